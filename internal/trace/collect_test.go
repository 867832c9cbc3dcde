package trace

import (
	"context"
	"errors"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

func TestCollectorKeepsATrace(t *testing.T) {
	clean(t)
	collector := NewCollector()
	tel := setup(t, Config{SpanProcessors: []sdktrace.SpanProcessor{collector}})
	spans := NewSpans(tel.Tracer, "tools")

	ctx, process := spans.Process(t.Context(), time.Now().Add(-time.Second), Message{})
	id := oteltrace.SpanContextFromContext(ctx).TraceID()
	done := make(chan error, 1)
	go func() { done <- collector.Wait(t.Context(), id, SpanProcessRequest) }()
	_, exec := spans.Stage(ctx, SpanExec)
	exec.End()
	_, other := spans.Stage(t.Context(), SpanExec)
	other.End()
	process.End()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	got := collector.Trace(id)
	if len(got) != 2 || got[0].Name() != SpanProcessRequest || got[1].Name() != SpanExec {
		t.Errorf("spans %v", got)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := collector.Wait(over, id, "never"); !errors.Is(err, context.Canceled) {
		t.Errorf("Wait for a span that never ends: %v", err)
	}
}
