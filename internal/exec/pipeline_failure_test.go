package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestPipelineRejects(t *testing.T) {
	for _, test := range []struct {
		name    string
		request *tool.Request
		code    tool.Code
		message string
	}{
		{"unknown project", request(in("nobody")), tool.UnknownProject, `"nobody"`},
		{"unknown tool", request(calling("nothing")), tool.UnknownTool, `"nothing"`},
		{"disabled tool", request(calling("locked")), tool.Forbidden, `"locked"`},
		{"no container resource", request(in("bare"), inContainer), tool.EnvironmentUnavailable, "bare"},
		{"no code", request(inlineCode(" ")), tool.UnsupportedSource, "no code"},
		{"other source", request(inlineCode("1"), func(r *tool.Request) { r.Inline.Source = "mcp" }), tool.UnsupportedSource, `"mcp"`},
		{"writes in a read-only project", request(calling("write"), in("frozen")), tool.ReadOnly, "frozen"},
		{"writes in a read-only plan", request(calling("write"), func(r *tool.Request) { r.Plan.ReadOnly = true }), tool.ReadOnly, "plan"},
		{"input schema", request(with(`{"count": "five", "path": 5}`)), tool.InvalidInput, "/count"},
		{"path outside", request(with(`{"path": "/etc/passwd"}`)), tool.PathEscape, "/input/path"},
		{"output outside", request(calling("write"), func(r *tool.Request) { r.Outputs = []string{"../x"} }), tool.PathEscape, "/outputs/0"},
		{"protected output", request(calling("write"), func(r *tool.Request) { r.Outputs = []string{".git/hooks/x"} }), tool.Forbidden, "protect"},
		{"NUL", request(with(`{"path": "a\u0000"}`)), tool.InvalidRequest, "NUL"},
		{"NUL below the root in a container", request(inContainer, with(`{"x": "/workspace"}`), func(r *tool.Request) {
			r.Input = json.RawMessage(`{"text": "DIR/\u0000"}`)
		}), tool.InvalidRequest, "/input/text"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			test.request.Input = json.RawMessage(strings.ReplaceAll(string(test.request.Input), "DIR", b.dir))
			res := b.execute(t, t.Context(), test.request)
			if res.Error == nil || res.Error.Code != test.code || !strings.Contains(res.Error.Message, test.message) {
				t.Fatalf("got %v, want %s that says %s", res.Error, test.code, test.message)
			}
			if res.Status() != tool.StatusRejected || res.Output != nil || res.Fault != nil || res.Metadata.Process != nil {
				t.Errorf("got %+v", res)
			}
			if len(b.host.tasks)+len(b.container.tasks) > 0 {
				t.Error("something ran")
			}
		})
	}
}

func TestPipelineFailures(t *testing.T) {
	broken := errors.New("engine unreachable")
	for _, test := range []struct {
		name   string
		ending *Ending
		err    error
		code   tool.Code
		fault  bool
	}{
		{"exit", func() *Ending { e := ended("kept", "why"); e.ExitCode = 3; return e }(), nil, tool.ExitStatus, false},
		{"not started", &Ending{StartError: "no such command"}, nil, tool.StartFailed, false},
		{"infrastructure", nil, broken, tool.Internal, true},
		{"fault", nil, &tool.Fault{Err: broken}, tool.Internal, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.host.run = func(context.Context, *Task) (*Ending, error) { return test.ending, test.err }
			res := b.execute(t, t.Context(), request())
			if res.Error == nil || res.Error.Code != test.code || res.Status() != tool.StatusFailed {
				t.Fatalf("got %v", res.Error)
			}
			if (res.Fault != nil) != test.fault {
				t.Errorf("fault %v", res.Fault)
			}
			switch {
			case test.fault:
				if !errors.Is(res.Fault, broken) || strings.Contains(res.Error.Message, "engine") || res.Output != nil {
					t.Errorf("fault %v, error %v", res.Fault, res.Error)
				}
			case test.ending.StartError != "":
				if res.Output != nil || res.Stdout != nil || res.Metadata.Process.ExitCode != -1 {
					t.Errorf("it never ran, and has %+v", res)
				}
			default:
				if text, _ := readPayload(t, res.Output); text != "kept" || res.Metadata.Process.ExitCode != 3 {
					t.Errorf("output %q, %+v", text, res.Metadata.Process)
				}
			}
		})
	}
}

func TestPipelineInterrupted(t *testing.T) {
	for _, cause := range []error{tool.ErrCancelled, tool.ErrDrained} {
		for _, before := range []bool{true, false} {
			b := newBench(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			if before {
				cancel(cause)
			}
			b.host.run = func(ctx context.Context, _ *Task) (*Ending, error) {
				cancel(cause)
				e := ended("half", "")
				e.ExitCode, e.Signal = 137, "SIGKILL"
				return e, nil
			}
			res := b.execute(t, ctx, request())
			if before == (len(b.host.tasks) > 0) {
				t.Errorf("%v: ran %d times", cause, len(b.host.tasks))
			}
			if errors.Is(cause, tool.ErrCancelled) {
				if res.Error == nil || res.Status() != tool.StatusCancelled || res.Fault != nil {
					t.Errorf("cancelled: got %v, %v", res.Error, res.Fault)
				}
			} else if !errors.Is(res.Fault, tool.ErrDrained) || res.Output != nil {
				t.Errorf("drained: got %v, %v", res.Error, res.Fault)
			}
		}
	}
}

func TestPipelineMissingSecretIsStartFailed(t *testing.T) {
	b := newBench(t)
	b.config.LookUpEnv = func(string) (string, bool) { return "", false }
	res := b.execute(t, t.Context(), request())
	if res.Error == nil || res.Error.Code != tool.StartFailed || !strings.Contains(res.Error.Message, "SECRET") ||
		!strings.HasPrefix(res.Error.Message, "Execution failed (exit code -1): ") {
		t.Errorf("got %v", res.Error)
	}
}
