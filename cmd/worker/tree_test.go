package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/terminal"
)

func TestTree(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	span := func(id, parent byte, name string, kind oteltrace.SpanKind, d time.Duration) sdktrace.ReadOnlySpan {
		context := func(id byte) oteltrace.SpanContext {
			return oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{id}})
		}
		return tracetest.SpanStub{
			Name: name, SpanKind: kind, SpanContext: context(id), Parent: context(parent),
			StartTime: start, EndTime: start.Add(d),
		}.Snapshot()
	}
	spans := []sdktrace.ReadOnlySpan{
		span(1, 0, "send tools.request", oteltrace.SpanKindProducer, 1500*time.Microsecond),
		span(2, 1, "process tools.request", oteltrace.SpanKindConsumer, 20*time.Millisecond),
		span(3, 2, "execute_tool sum", oteltrace.SpanKindInternal, 10*time.Millisecond),
		span(4, 3, "resolve", oteltrace.SpanKindInternal, 0),
		span(5, 3, "exec", oteltrace.SpanKindInternal, 9*time.Millisecond),
		span(6, 2, "ack tools.request", oteltrace.SpanKindClient, time.Millisecond),
		span(7, 99, "an orphan", oteltrace.SpanKindInternal, time.Second),
	}
	var buf bytes.Buffer
	if err := writeTree(&buf, spans, terminal.Style{}); err != nil {
		t.Fatal(err)
	}
	want := `send tools.request           1.50 ms  producer
└─ process tools.request    20.00 ms  consumer
   ├─ execute_tool sum      10.00 ms  internal
   │  ├─ resolve             0.00 ms  internal
   │  └─ exec                9.00 ms  internal
   └─ ack tools.request      1.00 ms  client
an orphan                 1000.00 ms  internal
`
	if diff := cmp.Diff(want, buf.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
