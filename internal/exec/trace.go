package exec

import (
	"context"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// Traced puts every execution into its span, the parent of those of the stages.
// runtime is the container engine's name for spans: docker, podman.
func Traced(next Executor, spans trace.Spans, runtime string) Executor {
	return traced{next, spans, runtime}
}

type traced struct {
	next    Executor
	spans   trace.Spans
	runtime string
}

func (d traced) Execute(ctx context.Context, r *tool.Request) *tool.Result {
	ctx, span := d.spans.ExecuteTool(ctx, r)
	defer span.End()
	res := d.next.Execute(ctx, r)
	if !span.IsRecording() {
		return res
	}
	span.SetAttributes(trace.Outcome(res)...)
	if c := res.Metadata.Container; c != nil {
		span.SetAttributes(trace.Container(c, d.runtime)...)
	} else {
		span.SetAttributes(trace.Process(res.Metadata.Process, res.Metadata.Sandbox)...)
	}
	trace.FailResult(span, res)
	return res
}
