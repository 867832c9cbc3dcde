package consume

import (
	"context"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

const sender = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// traced serves one request with recorded spans, and returns them by name.
func traced(t *testing.T, q *memory, run executorFunc, m event.Message) map[string]tracetest.SpanStub {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	cfg := q.config(run)
	cfg.Spans = trace.NewSpans(provider, "tools")
	_, drain := q.serve(cfg)
	q.publish(Lane{tool.DefaultPool, tool.Normal, "p"}, m)
	synctest.Wait()
	if err := drain(); err != nil {
		t.Error(err)
	}
	spans := map[string]tracetest.SpanStub{}
	for _, s := range exporter.GetSpans() {
		spans[s.Name] = s
	}
	return spans
}

func TestSpansOfADelivery(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		r := newRequest("a")
		r.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-1111111111111111-01" // where the trace began
		m, err := event.EncodeRequest(r, "tools")
		if err != nil {
			t.Fatal(err)
		}
		m.Header["Traceparent"] = []string{sender} // the last hop, read first
		var executed oteltrace.SpanContext
		spans := traced(t, q, func(ctx context.Context, r *tool.Request) *tool.Result {
			executed = oteltrace.SpanContextFromContext(ctx)
			return failed(r, tool.ExitStatus)
		}, m)
		process, send, ack := spans["process tools.request"], spans["send tools.result"], spans["ack tools.request"]
		if process.SpanKind != oteltrace.SpanKindConsumer || process.Parent.SpanID().String() != "b7ad6b7169203331" ||
			len(process.Links) != 1 || process.Links[0].SpanContext.SpanID() != process.Parent.SpanID() {
			t.Errorf("process: kind %s, parent %s, links %v", process.SpanKind, process.Parent.SpanID(), process.Links)
		}
		if executed.SpanID() != process.SpanContext.SpanID() {
			t.Error("the execution is not below the processing")
		}
		for name, s := range map[string]tracetest.SpanStub{"send": send, "ack": ack} {
			if s.Parent.SpanID() != process.SpanContext.SpanID() || s.SpanContext.TraceID().String() != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("%s: parent %s in trace %s", name, s.Parent.SpanID(), s.SpanContext.TraceID())
			}
		}
		if send.SpanKind != oteltrace.SpanKindProducer || ack.SpanKind != oteltrace.SpanKindClient {
			t.Errorf("kinds %s and %s", send.SpanKind, ack.SpanKind)
		}
		for span, want := range map[*tracetest.SpanStub]map[attribute.Key]string{
			&process: {"cloudevents.event_id": "a", "cloudevents.event_source": r.Source, "cloudevents.event_type": event.TypeRequest, "cloudevents.event_subject": r.Name()},
			&send:    {"cloudevents.event_id": "a.result", "cloudevents.event_type": event.TypeResult, "cloudevents.event_subject": r.Name()},
			&ack:     {"cloudevents.event_id": "a", "cloudevents.event_spec_version": "1.0"},
		} {
			set := attribute.NewSet(span.Attributes...)
			for key, value := range want {
				if got, _ := set.Value(key); got.String() != value {
					t.Errorf("%s: %s = %q, want %q", span.Name, key, got.String(), value)
				}
			}
		}
		if process.Status.Code != codes.Error || process.Status.Description != "exit_status" {
			t.Errorf("status %+v", process.Status)
		}
		result := q.results[requestKey{"p", "a"}]
		hop := result.Header["traceparent"]
		if len(hop) != 1 || hop[0] != "00-0af7651916cd43dd8448eb211c80319c-"+send.SpanContext.SpanID().String()+"-01" {
			t.Errorf("header of the result: %v, expected the sending span", hop)
		}
		if doc := q.result("a"); doc.Event.TraceParent != r.TraceParent {
			t.Errorf("extension of the result: %s, expected the request's unchanged", doc.Event.TraceParent)
		}
	})
}

func TestTraceGoesOnWhereTracingIsOff(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(succeed))
		m, err := event.EncodeRequest(newRequest("a"), "tools")
		if err != nil {
			t.Fatal(err)
		}
		m.Header["traceparent"] = []string{sender}
		q.publish(Lane{tool.DefaultPool, tool.Normal, "p"}, m)
		synctest.Wait()
		if hop := q.results[requestKey{"p", "a"}].Header["traceparent"]; len(hop) != 1 || hop[0] != sender {
			t.Errorf("header of the result: %v", hop)
		}
		drain()
	})
}

func TestSpanOfARequestThatGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		m, err := event.EncodeRequest(newRequest("a"), "tools")
		if err != nil {
			t.Fatal(err)
		}
		spans := traced(t, q, faulty, m)
		if len(spans) != 1 || spans["process tools.request"].Status.Code == codes.Error {
			t.Errorf("spans %v", spans)
		}
	})
}
