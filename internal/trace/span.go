package trace

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toolworker/toolworker/internal/tool"
)

// The span names of PROTOCOL.md section 8. They are the same whatever the
// subject prefix of a fleet: its subjects are attributes.
const (
	SpanSendRequest    = "send tools.request"
	SpanProcessRequest = "process tools.request"
	SpanSendResult     = "send tools.result"
	SpanAckRequest     = "ack tools.request"
	SpanResolve        = "resolve"
	SpanMapPaths       = "map paths"
	SpanExec           = "exec"
	SpanSync           = "sync"
)

// SpanExecuteTool is the name of the execution's span: the tool's name, never
// that of inline code, which planners choose.
func SpanExecuteTool(r *tool.Request) string {
	if r.Tool == "" {
		return "execute_tool " + tool.InlineName
	}
	return "execute_tool " + r.Tool
}

// Spans starts the spans of a request's way. The zero value starts none and
// costs nothing, but passes the context on.
type Spans struct {
	tracer oteltrace.Tracer
	prefix string
}

// NewSpans makes Spans for the fleet with this subject prefix.
func NewSpans(provider oteltrace.TracerProvider, prefix string) Spans {
	if _, off := provider.(noop.TracerProvider); off || provider == nil {
		return Spans{}
	}
	return Spans{tracer: provider.Tracer(Scope, oteltrace.WithSchemaURL(semconv.SchemaURL)), prefix: prefix}
}

// Message is what spans say of a message.
type Message struct {
	Subject string
	Size    int    // of the body, in bytes
	ID      string // of the event inside, "" when there is none
	// What else is known of the event; empty members are left out.
	Source, Type, EventSubject string
}

// start starts a span. Where tracing is off its options are never made, and
// the span passes the context of its parent on.
func (s Spans) start(ctx context.Context, name string, opts func() []oteltrace.SpanStartOption) (context.Context, oteltrace.Span) {
	if s.tracer == nil {
		return noop.Tracer{}.Start(ctx, name)
	}
	return s.tracer.Start(ctx, name, opts()...)
}

// SendRequest is the planner's side: publishing one request (PRODUCER).
func (s Spans) SendRequest(ctx context.Context, m Message) (context.Context, oteltrace.Span) {
	return s.start(ctx, SpanSendRequest, func() []oteltrace.SpanStartOption {
		return []oteltrace.SpanStartOption{
			oteltrace.WithSpanKind(oteltrace.SpanKindProducer),
			oteltrace.WithAttributes(m.attributes("send", semconv.MessagingOperationTypeSend, RequestTemplate(s.prefix))...),
		}
	})
}

// Process is the worker's side: one delivery of a request from its receipt to
// its settlement (CONSUMER). ctx carries the sender's context (Extract), of
// which the span is a child, and to which it is linked.
func (s Spans) Process(ctx context.Context, received time.Time, m Message) (context.Context, oteltrace.Span) {
	return s.start(ctx, SpanProcessRequest, func() []oteltrace.SpanStartOption {
		opts := []oteltrace.SpanStartOption{
			oteltrace.WithSpanKind(oteltrace.SpanKindConsumer),
			oteltrace.WithTimestamp(received),
			oteltrace.WithAttributes(m.attributes("process", semconv.MessagingOperationTypeProcess, RequestTemplate(s.prefix))...),
		}
		if sender := oteltrace.SpanContextFromContext(ctx); sender.IsValid() {
			opts = append(opts, oteltrace.WithLinks(oteltrace.Link{SpanContext: sender}))
		}
		return opts
	})
}

// ExecuteTool is one execution (INTERNAL); its context goes into the result's headers.
func (s Spans) ExecuteTool(ctx context.Context, r *tool.Request) (context.Context, oteltrace.Span) {
	if s.tracer == nil {
		return s.start(ctx, "", nil)
	}
	return s.start(ctx, SpanExecuteTool(r), func() []oteltrace.SpanStartOption {
		return []oteltrace.SpanStartOption{oteltrace.WithAttributes(toolCall(r)...)}
	})
}

// Stage is a child of ExecuteTool: SpanResolve, SpanMapPaths, SpanExec or SpanSync.
func (s Spans) Stage(ctx context.Context, name string) (context.Context, oteltrace.Span) {
	return s.start(ctx, name, func() []oteltrace.SpanStartOption { return nil })
}

// SendResult is the publishing of the result (PRODUCER).
func (s Spans) SendResult(ctx context.Context, m Message) (context.Context, oteltrace.Span) {
	return s.start(ctx, SpanSendResult, func() []oteltrace.SpanStartOption {
		return []oteltrace.SpanStartOption{
			oteltrace.WithSpanKind(oteltrace.SpanKindProducer),
			oteltrace.WithAttributes(m.attributes("send", semconv.MessagingOperationTypeSend, ResultTemplate(s.prefix))...),
		}
	})
}

// AckRequest is the acknowledgement of the request (CLIENT).
func (s Spans) AckRequest(ctx context.Context, m Message) (context.Context, oteltrace.Span) {
	return s.start(ctx, SpanAckRequest, func() []oteltrace.SpanStartOption {
		return []oteltrace.SpanStartOption{
			oteltrace.WithSpanKind(oteltrace.SpanKindClient),
			oteltrace.WithAttributes(m.attributes("ack", semconv.MessagingOperationTypeSettle, RequestTemplate(s.prefix))...),
		}
	})
}

// Fail marks a span as failed with a code of section 5, or with another short
// word for what the protocol has no code for. "" leaves it as it is.
func Fail(span oteltrace.Span, code tool.Code) {
	if code == "" || !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.ErrorTypeKey.String(string(code)))
	span.SetStatus(codes.Error, string(code))
}

// FailResult is Fail with the code of a result's error, if it has one.
func FailResult(span oteltrace.Span, r *tool.Result) {
	if r.Error != nil {
		Fail(span, r.Error.Code)
	}
}
