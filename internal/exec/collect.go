package exec

import (
	"context"
	"fmt"
	"io"

	"go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/tool"
	attributes "github.com/toolworker/toolworker/internal/trace"
)

// describe puts into the metadata how the process ended.
func (x *execution) describe(ctx context.Context, e *Ending) {
	m, res := &x.result.Metadata, x.result
	res.Duration, res.Changes, res.ChangesTruncated = e.Duration, e.Changes, e.ChangesTruncated
	res.Truncated = e.Truncated
	exitCode := e.ExitCode
	if e.StartError != "" {
		exitCode = -1
	}
	m.Process = &tool.ProcessMetadata{ExitCode: exitCode, Signal: e.Signal, TimedOut: e.TimedOut}
	m.Sandbox, m.Container = e.Sandbox, e.Container
	if e.Usage != (tool.Usage{}) {
		m.Usage = &e.Usage
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if m.Container != nil {
		span.SetAttributes(attributes.Container(m.Container, x.ContainerRuntime)...)
		return
	}
	span.SetAttributes(attributes.Process(m.Process, m.Sandbox)...)
}

// sync takes over what the tool wrote, checks it and brings its files back.
// failed is why the tool did not succeed; the output is kept nevertheless.
func (x *execution) sync(stopped context.Context, failed error) error {
	// What has run to its end is answered, even if somebody loses patience now.
	ctx := context.WithoutCancel(stopped)
	err := x.collect(ctx)
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	if err := x.checkOutput(); err != nil {
		return err
	}
	if s, ok := x.backend.(Syncer); ok {
		if err := s.Sync(ctx, &x.task); err != nil {
			return err
		}
	}
	return x.verifyFiles(stopped)
}

// collect makes the payloads of the result. They take over the contents of
// the ending, also when an error is returned.
func (x *execution) collect(ctx context.Context) error {
	e, res := x.ending, x.result
	if e.StartError != "" {
		e.close()
		return nil
	}
	var err error
	if e.Stderr != nil {
		if res.Stderr, err = text(e.Stderr); err != nil {
			return err
		}
	}
	if e.Combined != nil {
		if res.Output, err = text(e.Combined); err != nil {
			return err
		}
	}
	if e.Stdout != nil {
		if res.Stdout, err = text(e.Stdout); err != nil {
			return err
		}
		if res.Output, err = x.commandOutput(ctx, e, res.Stdout); err != nil {
			return err
		}
	}
	if e.Value != nil {
		res.Value = tool.Document(e.Value)
	}
	if x.task.Resolution.Resolved == tool.Container {
		return x.mapOut()
	}
	return nil
}

// commandOutput is stdout as a document if it is one, else as the text that
// it is already. What was cut is no document, even if it happens to read like one.
func (x *execution) commandOutput(ctx context.Context, e *Ending, stdout *tool.Payload) (*tool.Payload, error) {
	cut := e.Truncated
	if c, ok := e.Stdout.(*capture.Captured); ok {
		cut = c.Truncated
	}
	if !cut {
		document, err := capture.Document(ctx, e.Stdout)
		switch {
		case err != nil:
			return nil, &tool.Fault{Err: err}
		case document:
			return &tool.Payload{Document: true, Content: e.Stdout}, nil
		}
	}
	return stdout, nil
}

// text is content as a text payload. On an error the content is closed.
func text(c tool.Content) (*tool.Payload, error) {
	valid, err := capture.Text(c)
	if err != nil {
		_ = c.Close()
		return nil, &tool.Fault{Err: err}
	}
	return &tool.Payload{Content: valid}, nil
}

// close frees the contents of an ending that goes into no result.
func (e *Ending) close() {
	for _, c := range []tool.Content{e.Stdout, e.Stderr, e.Combined} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// maxCheckedOutput bounds a document that an output_schema is applied to, in
// bytes: it is held in memory, many times its size.
const maxCheckedOutput = 16 << 20

// checkOutput applies the tool's output_schema: to the document on stdout of
// a command; of code to its result, or when it assigned none to what it printed.
func (x *execution) checkOutput() error {
	schema := x.catalogue.OutputSchema(x.request.Tool)
	if schema == nil {
		return nil
	}
	payload := x.result.Output
	if x.result.Value != nil {
		payload = x.result.Value
	}
	if payload == nil {
		payload = tool.Text("")
	}
	if size := payload.Content.Size(); size > maxCheckedOutput {
		return tool.Errorf(tool.InvalidOutput, "output has %d bytes: expected at most %d of a tool with an output_schema", size, maxCheckedOutput)
	}
	if x.result.Truncated {
		return tool.Errorf(tool.InvalidOutput, "output was cut at %d bytes: expected a whole document of a tool with an output_schema", x.task.Limits.MaxOutputBytes)
	}
	r, err := payload.Content.Open()
	if err != nil {
		return &tool.Fault{Err: err}
	}
	defer r.Close()
	doc, err := io.ReadAll(r)
	if err != nil {
		return &tool.Fault{Err: fmt.Errorf("read output: %w", err)}
	}
	if err := schema.CheckOutput(doc); err != nil {
		return err
	}
	return nil
}
