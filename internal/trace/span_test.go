package trace

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/tool"
)

var zeroTime time.Time

func request() *tool.Request {
	return &tool.Request{
		Envelope: tool.Envelope{ID: "r-secret-1"},
		Pool:     "default", Priority: tool.High, Project: "project-1", Tool: "file_read",
		Input: []byte(`{"path":"/srv/hidden"}`),
	}
}

// record runs f with spans that are recorded, and returns them by name.
func record(t *testing.T, f func(context.Context, Spans)) map[string]tracetest.SpanStub {
	t.Helper()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	f(t.Context(), NewSpans(provider, "tools"))
	byName := map[string]tracetest.SpanStub{}
	for _, s := range exporter.GetSpans() {
		byName[s.Name] = s
	}
	return byName
}

func attr(s tracetest.SpanStub, key attribute.Key) string {
	for _, kv := range s.Attributes {
		if kv.Key == key {
			return kv.Value.String()
		}
	}
	return ""
}

func TestSpansOfARequest(t *testing.T) {
	r := request()
	msg := Message{Subject: "tools.request.default.high.project-1", ID: r.ID, Size: 120}
	received := time.Now().Add(-time.Minute)
	header := map[string][]string{}
	spans := record(t, func(ctx context.Context, spans Spans) {
		sent, send := spans.SendRequest(ctx, msg)
		Inject(sent, header)
		send.End()

		ctx, process := spans.Process(Extract(ctx, header, "", ""), received, msg)
		run, execute := spans.ExecuteTool(ctx, r)
		for _, name := range []string{SpanResolve, SpanMapPaths, SpanExec, SpanSync} {
			_, stage := spans.Stage(run, name)
			stage.End()
		}
		execute.End()
		_, result := spans.SendResult(ctx, Message{Subject: "tools.result.project-1.r-secret-1", ID: r.ID + ".result"})
		result.End()
		_, ack := spans.AckRequest(ctx, msg)
		ack.End()
		process.End()
	})

	for name, want := range map[string]struct {
		parent string
		kind   oteltrace.SpanKind
	}{
		SpanSendRequest:          {"", oteltrace.SpanKindProducer},
		SpanProcessRequest:       {SpanSendRequest, oteltrace.SpanKindConsumer},
		"execute_tool file_read": {SpanProcessRequest, oteltrace.SpanKindInternal},
		SpanResolve:              {"execute_tool file_read", oteltrace.SpanKindInternal},
		SpanMapPaths:             {"execute_tool file_read", oteltrace.SpanKindInternal},
		SpanExec:                 {"execute_tool file_read", oteltrace.SpanKindInternal},
		SpanSync:                 {"execute_tool file_read", oteltrace.SpanKindInternal},
		SpanSendResult:           {SpanProcessRequest, oteltrace.SpanKindProducer},
		SpanAckRequest:           {SpanProcessRequest, oteltrace.SpanKindClient},
	} {
		span, ok := spans[name]
		if !ok {
			t.Errorf("no span %q", name)
			continue
		}
		if span.SpanKind != want.kind {
			t.Errorf("%s: kind %v, want %v", name, span.SpanKind, want.kind)
		}
		if got, wanted := span.Parent.SpanID(), spans[want.parent].SpanContext.SpanID(); got != wanted {
			t.Errorf("%s: parent %v, want %q %v", name, got, want.parent, wanted)
		}
		if span.SpanContext.TraceID() != spans[SpanSendRequest].SpanContext.TraceID() {
			t.Errorf("%s is in another trace", name)
		}
		for _, secret := range []string{"project-1", "r-secret-1", "/srv"} {
			if strings.Contains(span.Name, secret) {
				t.Errorf("span name %q holds %q", span.Name, secret)
			}
		}
	}

	process := spans[SpanProcessRequest]
	if len(process.Links) != 1 || process.Links[0].SpanContext.SpanID() != spans[SpanSendRequest].SpanContext.SpanID() {
		t.Errorf("process links: %v", process.Links)
	}
	if !process.StartTime.Equal(received) {
		t.Errorf("process started %v, received %v", process.StartTime, received)
	}
	for key, want := range map[attribute.Key]string{
		"messaging.system":               "nats",
		"messaging.operation.type":       "process",
		"messaging.destination.template": "tools.request.{pool}.{priority}.{project}",
		"messaging.destination.name":     msg.Subject,
		"messaging.message.id":           r.ID,
	} {
		if got := attr(process, key); got != want {
			t.Errorf("process: %s = %q, want %q", key, got, want)
		}
	}
	if got := attr(spans["execute_tool file_read"], "gen_ai.tool.call.id"); got != r.ID {
		t.Errorf("gen_ai.tool.call.id = %q", got)
	}
	for name, span := range spans {
		for _, kv := range span.Attributes {
			if strings.Contains(kv.Value.String(), "/srv/hidden") {
				t.Errorf("%s: the input is in attribute %s", name, kv.Key)
			}
		}
	}
}

func TestInlineNamesAreNoSpanNames(t *testing.T) {
	r := &tool.Request{Inline: &tool.Inline{Name: "chosen-by-a-planner"}}
	if got := SpanExecuteTool(r); got != "execute_tool inline" {
		t.Errorf("got %q", got)
	}
}

func TestProcessWithoutASenderHasNoLink(t *testing.T) {
	spans := record(t, func(ctx context.Context, spans Spans) {
		_, s := spans.Process(ctx, time.Now(), Message{})
		s.End()
	})
	if s := spans[SpanProcessRequest]; len(s.Links) != 0 || s.Parent.IsValid() {
		t.Errorf("links %v, parent %v", s.Links, s.Parent)
	}
}

func TestFailSaysTheCodeOnly(t *testing.T) {
	spans := record(t, func(ctx context.Context, spans Spans) {
		_, failed := spans.Stage(ctx, "failed")
		FailResult(failed, &tool.Result{Error: tool.Errorf(tool.ExitStatus, "Execution failed (exit code 1): secret")})
		failed.End()
		_, fine := spans.Stage(ctx, "fine")
		FailResult(fine, &tool.Result{})
		fine.End()
	})
	s := spans["failed"]
	if s.Status.Code != codes.Error || s.Status.Description != "exit_status" || attr(s, "error.type") != "exit_status" {
		t.Errorf("status %v, error.type %q", s.Status, attr(s, "error.type"))
	}
	if s := spans["fine"]; s.Status.Code != codes.Unset || attr(s, "error.type") != "" {
		t.Errorf("a span that did not fail: %v", s.Status)
	}
}

func TestOutcomeAttributes(t *testing.T) {
	res := &tool.Result{Attempt: 2, Error: tool.Errorf(tool.TimedOut, "x"), Metadata: tool.Metadata{
		Environment: &tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedByPlan},
	}}
	container := &tool.ContainerMetadata{ContainerID: "abc", Image: "img:1", WorkspaceFolder: "/workspace", ExecTimeMS: 1.5, ExitCode: 3, TimedOut: true}
	set := attribute.NewSet(append(Outcome(res), append(Container(container, "docker"), Message{ID: "r-1", Source: "/planner", Type: "t"}.event()...)...)...)
	for key, want := range map[attribute.Key]string{
		KeyStatus: "failed", KeyAttempt: "2", KeyEnvironment: "host", KeyDecidedBy: "plan",
		"container.id": "abc", "container.image.name": "img:1", "container.runtime.name": "docker",
		KeyWorkspaceFolder: "/workspace", "process.exit.code": "3", KeyExecTimeMS: "1.5", KeyTimedOut: "true",
		"cloudevents.event_id": "r-1", "cloudevents.event_source": "/planner", "cloudevents.event_spec_version": "1.0",
	} {
		if got, _ := set.Value(key); got.String() != want {
			t.Errorf("%s = %q, want %q", key, got.String(), want)
		}
	}
	if set.HasValue("cloudevents.event_subject") {
		t.Error("an empty subject is an attribute")
	}
	host := attribute.NewSet(Process(&tool.ProcessMetadata{ExitCode: 137}, &tool.SandboxMetadata{Isolation: tool.IsolationFull})...)
	if v, _ := host.Value(KeyIsolation); v.AsString() != "full" {
		t.Errorf("isolation = %q", v.AsString())
	}
}
