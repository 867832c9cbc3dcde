package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
	"github.com/toolworker/toolworker/schemas"
)

// answer is what became of a sample.
type answer struct {
	sample      schemas.Sample
	trace       oteltrace.TraceID
	doc         *event.ResultDoc // nil when there is none
	differences []string         // from what the sample says
}

// richer reports whether the trace of a shows more than that of b: a value
// and printed text need every stage.
func (a answer) richer(b answer) bool {
	return b.doc == nil || a.doc != nil && a.doc.Success && a.doc.Value != nil
}

// ask sends a sample as a planner does, and waits for its result.
func (d *demo) ask(ctx context.Context, client *queue.Client, sample schemas.Sample) answer {
	a := answer{sample: sample}
	failed := func(err error) answer {
		a.differences = []string{err.Error()}
		return a
	}
	r, err := read(sample, client.Names)
	if err != nil {
		return failed(err)
	}
	ctx, planner := d.spans.Stage(ctx, "planner")
	defer planner.End()
	ctx, span := d.spans.SendRequest(ctx, trace.Message{
		Subject: client.Names.RequestSubject(r.Pool, r.Priority, r.Project), Size: len(sample.Request),
		ID: r.ID, Source: r.Source, Type: event.TypeRequest, EventSubject: r.Name(),
	})
	a.trace = span.SpanContext().TraceID()
	r.TraceParent, r.TraceState = trace.Extension(ctx)
	m, err := event.EncodeRequest(r, client.Names.Prefix())
	if err == nil {
		trace.Inject(ctx, m.Header)
		_, err = client.Publish(ctx, r.Project, r.ID, m)
	}
	span.End()
	if err != nil {
		return failed(err)
	}
	result, err := client.WaitResult(ctx, r.Project, r.ID)
	if err != nil {
		return failed(err)
	}
	if a.doc, err = event.DecodeResult(result); err != nil {
		return failed(err)
	}
	for _, f := range sample.Judge(a.doc.Raw) {
		a.differences = append(a.differences, f.String())
	}
	return a
}

// read reads the request of a sample: a whole event, or the data of one.
func read(sample schemas.Sample, names queue.Names) (*tool.Request, error) {
	if r, err := event.DecodeData(sample.Request); err == nil {
		r.ID, r.Source, r.Time = sample.Name, "/demo", time.Now()
		return r, nil
	}
	var e struct {
		Data struct {
			Project string `json:"project"`
		} `json:"data"`
	}
	if err := json.Unmarshal(sample.Request, &e); err != nil {
		return nil, fmt.Errorf("read sample %s: %w", sample.Name, err)
	}
	r, err := event.DecodeRequest(event.Message{
		Subject: names.RequestSubject(tool.DefaultPool, tool.Normal, e.Data.Project), Data: sample.Request,
	}, names.Prefix())
	if err != nil {
		return nil, fmt.Errorf("read sample %s: %w", sample.Name, err)
	}
	r.Time = time.Now()
	return r, nil
}
