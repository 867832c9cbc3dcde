package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
	"github.com/toolworker/toolworker/internal/tool"
)

// show prints a result: the tool's output on standard output, and nothing
// else there; what is said about it on standard error. seen says that the
// output has been shown as it came. The error carries the exit code.
func (s *session) show(ctx context.Context, client *queue.Client, doc *event.ResultDoc, seen bool) error {
	if s.JSON {
		whole, err := complete(ctx, client, doc)
		if err != nil {
			return err
		}
		if err := s.printJSON(whole); err != nil {
			return err
		}
		return quiet(outcome(doc))
	}
	if !seen {
		if err := s.showOutput(ctx, client, doc); err != nil {
			return err
		}
	}
	if err := s.showSummary(ctx, client, doc); err != nil {
		return err
	}
	return outcome(doc)
}

func (s *session) showOutput(ctx context.Context, client *queue.Client, doc *event.ResultDoc) error {
	output, err := text(ctx, client, doc, "output", jsontext.Value(doc.Output))
	if err != nil {
		return err
	}
	if err := write(s.Out, output); err != nil || doc.Stderr == nil {
		return err
	}
	stderr := []byte(*doc.Stderr)
	if ref, moved := doc.Refs["stderr"]; moved {
		if stderr, err = fetch(ctx, client, "stderr", ref); err != nil {
			return err
		}
	}
	return write(s.Err, stderr)
}

// write writes foreign text as it is, but to a terminal only what is harmless.
func write(w io.Writer, content []byte) error {
	if terminal.Is(w) {
		shown := printable(content)
		if shown != "" && !strings.HasSuffix(shown, "\n") {
			shown += "\n"
		}
		content = []byte(shown)
	}
	_, err := w.Write(content)
	return err
}

// lineWidth bounds what is shown of a value or path.
const lineWidth = 500

func (s *session) showSummary(ctx context.Context, client *queue.Client, doc *event.ResultDoc) error {
	style := terminal.NewStyle(s.Err)
	value := jsontext.Value(doc.Value)
	if ref, moved := doc.Refs["value"]; moved {
		var err error
		if value, err = fetch(ctx, client, "value", ref); err != nil {
			return err
		}
	}
	var lines []string
	if value != nil {
		lines = append(lines, "value: "+terminal.Line(string(value), lineWidth))
	}
	for _, f := range doc.Files {
		lines = append(lines, fmt.Sprintf("file: %s %d bytes %s", terminal.Line(f.HostPath, lineWidth), f.SizeBytes, f.SHA256))
	}
	for _, c := range doc.Changes {
		lines = append(lines, c.Change+": "+terminal.Line(c.Path, lineWidth))
	}
	if doc.Truncated {
		lines = append(lines, style.Odd("the output is cut off at its limit"))
	}
	lines = append(lines, style.Faint(summary(doc)))
	_, err := fmt.Fprintln(s.Err, strings.Join(lines, "\n"))
	return err
}

// summary is one line about how a request was answered.
func summary(doc *event.ResultDoc) string {
	line := string(doc.Status)
	if doc.Metadata.Environment != nil && doc.Status != tool.StatusRejected {
		line += fmt.Sprintf(" in %s on %s", short(duration(doc)), doc.Metadata.Environment.Resolved)
		if box := doc.Metadata.Sandbox; box != nil {
			line += fmt.Sprintf(" (isolation %s)", box.Isolation)
		}
	}
	if doc.Worker != "" {
		line += ", worker " + terminal.Line(doc.Worker, 140)
	}
	if doc.Attempt > 1 {
		line += fmt.Sprintf(", attempt %d", doc.Attempt)
	}
	return line
}

func duration(doc *event.ResultDoc) time.Duration {
	return time.Duration(doc.DurationMS * float64(time.Millisecond))
}

// quiet keeps the exit code of an error and says nothing more: the JSON has.
func quiet(err error) error {
	if err == nil {
		return nil
	}
	return done(command.ExitCode(err))
}
