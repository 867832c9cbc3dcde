package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// executorFunc is an Executor for one test.
type executorFunc func(ctx context.Context, r *tool.Request) *tool.Result

func (f executorFunc) Execute(ctx context.Context, r *tool.Request) *tool.Result { return f(ctx, r) }

// answering gives a fixed result.
func answering(res *tool.Result) Executor {
	return executorFunc(func(context.Context, *tool.Request) *tool.Result { return res })
}

// logLines is a logger and what it wrote.
func logLines() (*slog.Logger, func(t *testing.T) []map[string]any) {
	var buf bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return log, func(t *testing.T) []map[string]any {
		t.Helper()
		var lines []map[string]any
		for line := range strings.Lines(buf.String()) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fields)
		}
		return lines
	}
}

func TestRecoveredAnswersAPanic(t *testing.T) {
	log, lines := logLines()
	executor := Recovered(executorFunc(func(_ context.Context, r *tool.Request) *tool.Result {
		if r.Tool == "read" {
			panic("secret detail")
		}
		return newResult(r)
	}), log)
	if res := executor.Execute(t.Context(), request(calling("other"))); res.Error != nil {
		t.Errorf("no panic: got %v", res.Error)
	}
	res := executor.Execute(t.Context(), request())
	if res.Error == nil || res.Error.Code != tool.Internal || res.Fault != nil || res.RequestID != "r-1" || res.PlanID != "plan-7" {
		t.Fatalf("got %+v", res)
	}
	if strings.Contains(res.Error.Message, "secret") {
		t.Errorf("the answer tells the panic: %v", res.Error)
	}
	got := lines(t)
	if len(got) != 1 || got[0]["panic"] != "secret detail" || got[0]["error"] != res.Error.Message || !strings.Contains(got[0]["stack"].(string), "decorators_test.go") {
		t.Errorf("log %v", got)
	}
}

func TestLogged(t *testing.T) {
	fault := &tool.Fault{Err: errors.New("engine unreachable")}
	for _, test := range []struct {
		name  string
		res   *tool.Result
		level string
		want  map[string]any
	}{
		{"success", &tool.Result{Metadata: tool.Metadata{
			Environment: &tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedByPlan},
			Process:     &tool.ProcessMetadata{ExitCode: 0}, Sandbox: &tool.SandboxMetadata{Isolation: tool.IsolationFull},
		}}, "DEBUG", map[string]any{"status": "succeeded", "environment": "host", "decided_by": "plan", "isolation": "full", "exit_code": 0.0}},
		{"failure", &tool.Result{Error: tool.Errorf(tool.ExitStatus, "x")}, "DEBUG", map[string]any{"status": "failed", "code": "exit_status"}},
		{"truncated", &tool.Result{Truncated: true}, "WARN", map[string]any{"msg": "output was truncated"}},
		{"fault", &tool.Result{Error: tool.Errorf(tool.Internal, "see abc"), Fault: fault}, "ERROR",
			map[string]any{"error": "see abc", "fault": "infrastructure: engine unreachable"}},
		{"drained", &tool.Result{Error: tool.Errorf(tool.Internal, "x"), Fault: tool.ErrDrained}, "INFO", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			log, lines := logLines()
			if res := Logged(answering(test.res), log).Execute(t.Context(), request()); res != test.res {
				t.Errorf("got another result")
			}
			got := lines(t)
			if len(got) != 2 || got[1]["level"] != test.level || got[1]["request"] != "r-1" || got[1]["tool"] != "read" {
				t.Fatalf("log %v", got)
			}
			for name, value := range test.want {
				if got[1][name] != value {
					t.Errorf("%s: got %v, want %v", name, got[1][name], value)
				}
			}
		})
	}
}

// tracedRun runs a request through the pipeline and returns its spans by name.
func tracedRun(t *testing.T, b *bench, r *tool.Request) map[string]sdktrace.ReadOnlySpan {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	b.config.Spans = trace.NewSpans(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)), "tools")
	b.config.ContainerRuntime = "docker"
	pipeline, err := New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	res := Traced(pipeline, b.config.Spans, "docker").Execute(t.Context(), r)
	t.Cleanup(res.Close)
	spans := map[string]sdktrace.ReadOnlySpan{}
	for _, span := range recorder.Ended() {
		spans[span.Name()] = span
	}
	return spans
}

func attributesOf(span sdktrace.ReadOnlySpan) map[string]any {
	all := map[string]any{}
	for _, kv := range span.Attributes() {
		all[string(kv.Key)] = kv.Value.AsInterface()
	}
	return all
}

func TestTracedStages(t *testing.T) {
	b := newBench(t)
	b.host.run = func(context.Context, *Task) (*Ending, error) {
		e := ended("secret output", "")
		e.ExitCode, e.Sandbox = 3, &tool.SandboxMetadata{Isolation: tool.IsolationFull}
		return e, nil
	}
	spans := tracedRun(t, b, request(with(`{"path": "secret-input"}`)))
	parent := spans["execute_tool read"]
	if parent == nil || len(spans) != 5 {
		t.Fatalf("got %d spans", len(spans))
	}
	order := []string{"resolve", "map paths", "exec", "sync"}
	for i, name := range order {
		span := spans[name]
		if span == nil || span.Parent().SpanID() != parent.SpanContext().SpanID() || span.SpanKind() != oteltrace.SpanKindInternal {
			t.Fatalf("%s: %v", name, span)
		}
		if i > 0 && span.StartTime().Before(spans[order[i-1]].EndTime()) {
			t.Errorf("%s begins before %s ends", name, order[i-1])
		}
	}
	for name, want := range map[string]map[string]any{
		"execute_tool read": {
			"gen_ai.tool.name": "read", "gen_ai.tool.call.id": "r-1", "error.type": "exit_status", "toolworker.decided_by": "system",
			"process.exit.code": int64(3), "toolworker.isolation": "full",
		},
		"exec": {"error.type": "exit_status", "process.exit.code": int64(3)},
	} {
		got := attributesOf(spans[name])
		for key, value := range want {
			if got[key] != value {
				t.Errorf("%s: %s is %v, want %v", name, key, got[key], value)
			}
		}
	}
	for name, span := range spans {
		for key, value := range attributesOf(span) {
			if text, ok := value.(string); ok && (strings.Contains(text, "secret") || strings.Contains(text, "s3cret")) {
				t.Errorf("%s: %s tells %q", name, key, text)
			}
		}
	}
}

func TestTracedRejection(t *testing.T) {
	spans := tracedRun(t, newBench(t), request(calling("nothing")))
	names := []string{}
	for name, span := range spans {
		names = append(names, name)
		if attributesOf(span)["error.type"] != "unknown_tool" {
			t.Errorf("%s: %v", name, span.Attributes())
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"execute_tool nothing", "resolve"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestTracedContainer(t *testing.T) {
	b := newBench(t)
	b.container.run = func(context.Context, *Task) (*Ending, error) {
		e := printed("x")
		e.Container = &tool.ContainerMetadata{ContainerID: "abc", Image: "img", WorkspaceFolder: "/workspace", ExecTimeMS: 1.5, TimedOut: false}
		return e, nil
	}
	spans := tracedRun(t, b, request(inlineCode("1"), inContainer))
	for _, name := range []string{"execute_tool inline", "exec"} {
		got := map[string]attribute.Value{}
		for _, kv := range spans[name].Attributes() {
			got[string(kv.Key)] = kv.Value
		}
		for key, want := range map[string]any{
			"container.id": "abc", "container.image.name": "img", "container.runtime.name": "docker", "toolworker.workspace_folder": "/workspace",
			"process.exit.code": int64(0), "toolworker.exec_time_ms": 1.5, "toolworker.timed_out": false,
		} {
			if value, ok := got[key]; !ok || value.AsInterface() != want {
				t.Errorf("%s: %s is %v, want %v", name, key, value, want)
			}
		}
	}
}

// TestDecoratorsCompose: every one alone and all of them around the pipeline.
func TestDecoratorsCompose(t *testing.T) {
	b := newBench(t)
	pipeline, err := New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	for _, executor := range []Executor{
		Recovered(pipeline, log), Logged(pipeline, log), Traced(pipeline, trace.Spans{}, ""),
		Recovered(Traced(Logged(pipeline, log), trace.Spans{}, ""), log),
	} {
		if res := executor.Execute(t.Context(), request()); res.Error != nil || res.Output == nil {
			t.Errorf("got %v", res.Error)
		}
	}
}
