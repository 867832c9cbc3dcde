package exec

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/tool"
)

// TestPipelineOutputOfCommands: what is a document and what is text.
func TestPipelineOutputOfCommands(t *testing.T) {
	for stdout, document := range map[string]bool{
		"": false, "text": false, `{"a":1,"a":2}`: false, "NaN": false, "noise\n{}": false, "{}{}": false, "{}": true, " [1]\n": true, "12": true,
	} {
		b := newBench(t)
		b.host.run = func(context.Context, *Task) (*Ending, error) { return ended(stdout, ""), nil }
		res := b.execute(t, t.Context(), request())
		if text, isDocument := readPayload(t, res.Output); text != stdout || isDocument != document {
			t.Errorf("%q: got %q, document %v", stdout, text, isDocument)
		}
	}
}

func TestPipelineOutputThatWasCutIsText(t *testing.T) {
	b := newBench(t)
	b.host.run = func(context.Context, *Task) (*Ending, error) {
		out, errs := capture.NewWriter(capture.Options{Limit: 3}), capture.NewWriter(capture.Options{Limit: 100})
		_, _ = out.Write([]byte("123456"))
		stdout, err := out.Finish()
		if err != nil {
			return nil, err
		}
		stderr, err := errs.Finish()
		return &Ending{Stdout: stdout, Stderr: stderr, Truncated: true}, err
	}
	res := b.execute(t, t.Context(), request())
	if text, document := readPayload(t, res.Output); text != "123" || document || !res.Truncated {
		t.Errorf("got %q, document %v", text, document)
	}
}

func TestPipelineOutputSchema(t *testing.T) {
	for _, test := range []struct {
		name   string
		tool   string
		ending *Ending
		ok     bool
	}{
		{"satisfied", "typed", ended(`{"n": 1}`, ""), true},
		{"violated", "typed", ended(`{"m": 1}`, ""), false},
		{"no JSON", "typed", ended("text", ""), false},
		{"nothing", "typed", ended("", ""), false},
		{"value satisfied", "coded", func() *Ending { e := printed("noise"); e.Value = json.RawMessage(`{"n":1}`); return e }(), true},
		{"value violated", "coded", func() *Ending { e := printed(`{"n":1}`); e.Value = json.RawMessage(`[]`); return e }(), false},
		{"printed, no value", "coded", printed(`{"n":1}`), true},
		{"cut", "coded", func() *Ending { e := printed(`{"n":1}`); e.Truncated = true; return e }(), false},
		{"too large", "typed", ended(`{"n": "`+strings.Repeat("x", maxCheckedOutput)+`"}`, ""), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			b.host.run = func(context.Context, *Task) (*Ending, error) { return test.ending, nil }
			res := b.execute(t, t.Context(), request(calling(test.tool)))
			if test.ok && res.Error != nil {
				t.Errorf("got %v", res.Error)
			}
			if !test.ok && (res.Error == nil || res.Error.Code != tool.InvalidOutput || res.Output == nil) {
				t.Errorf("got %v, output %v", res.Error, res.Output)
			}
		})
	}
}

// TestPipelineVerifiesOutputs: what stands at an output's name when the tool
// has ended (CASES 21, 22, 23 of the files).
func TestPipelineVerifiesOutputs(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"missing":   func(string) error { return nil },
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"fifo":      func(p string) error { return mkfifo(p) },
		"symlink":   func(p string) error { return os.Symlink("/etc/passwd", p) },
		"dangling":  func(p string) error { return os.Symlink("nowhere", p) },
		"loop":      func(p string) error { return os.Symlink(p, p) },
		"hard link": func(p string) error {
			return errors.Join(os.WriteFile(p, []byte("x"), 0o600), os.Link(p, p+".2"))
		},
		"sparse and huge": func(p string) error { return errors.Join(os.WriteFile(p, nil, 0o600), os.Truncate(p, 1<<40)) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
				return ended("", ""), make(task.Outputs[0].HostPath)
			}
			res := b.execute(t, t.Context(), request(calling("write"), func(r *tool.Request) { r.Outputs = []string{"out"} }))
			if res.Error == nil || res.Error.Code != tool.SyncFailed || !strings.Contains(res.Error.Message, "/outputs/0") || res.Output == nil {
				t.Fatalf("got %v", res.Error)
			}
			if strings.Contains(res.Error.Message, "/etc") || strings.Contains(res.Error.Message, b.dir) {
				t.Errorf("the message tells a host path: %v", res.Error)
			}
		})
	}
}

// TestPipelineLargeOutputs: terabytes of nothing are made in no time. Reading
// them outlasts neither the tool's own time nor a cancellation.
func TestPipelineLargeOutputs(t *testing.T) {
	sparse := func(task *Task) error {
		return errors.Join(os.WriteFile(task.Outputs[0].HostPath, nil, 0o600), os.Truncate(task.Outputs[0].HostPath, 1<<43))
	}
	for name, c := range map[string]struct {
		seconds float64
		cause   error
		code    tool.Code
	}{
		"too slow":  {0.1, nil, tool.SyncFailed},
		"cancelled": {1000, tool.ErrCancelled, tool.Cancelled},
		"drained":   {1000, tool.ErrDrained, tool.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
				if c.cause != nil {
					cancel(c.cause)
				}
				return ended("", ""), sparse(task)
			}
			res := b.execute(t, ctx, request(calling("write"), func(r *tool.Request) {
				r.Outputs, r.Limits = []string{"out"}, tool.Limits{TimeoutSeconds: c.seconds, FileSizeBytes: 1 << 50}
			}))
			if res.Error == nil || res.Error.Code != c.code || errors.Is(c.cause, tool.ErrDrained) && !errors.Is(res.Fault, c.cause) {
				t.Errorf("got %v, fault %v", res.Error, res.Fault)
			}
		})
	}
}

// TestPipelineAnswersWhatHasEnded: who cancels when all is done is too late.
func TestPipelineAnswersWhatHasEnded(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		cancel(tool.ErrCancelled)
		return ended("", ""), os.WriteFile(task.Outputs[0].HostPath, []byte("x"), 0o600)
	}
	res := b.execute(t, ctx, request(calling("write"), func(r *tool.Request) { r.Outputs = []string{"out"} }))
	if res.Error != nil || len(res.Files) != 1 {
		t.Errorf("got %v, files %v", res.Error, res.Files)
	}
}

func TestPipelineNotesChangesOfAContainer(t *testing.T) {
	for _, exitCode := range []int{0, 1} {
		b := newBench(t)
		for _, name := range []string{"modified", "deleted", "kept"} {
			if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.container.run = func(context.Context, *Task) (*Ending, error) {
			e := ended("", "")
			e.ExitCode = exitCode
			return e, errors.Join(
				os.WriteFile(filepath.Join(b.dir, "created"), nil, 0o600),
				os.WriteFile(filepath.Join(b.dir, "modified"), []byte("x"), 0o600),
				os.Remove(filepath.Join(b.dir, "deleted")))
		}
		res := b.execute(t, t.Context(), request(calling("write"), inContainer))
		want := []tool.Change{{Path: "created", Change: tool.Created}, {Path: "deleted", Change: tool.Deleted}, {Path: "modified", Change: tool.Modified}}
		if diff := cmp.Diff(want, res.Changes); diff != "" || res.ChangesTruncated || (res.Error == nil) != (exitCode == 0) {
			t.Errorf("exit code %d, %v: %s", exitCode, res.Error, diff)
		}
	}
}

func TestPipelineLive(t *testing.T) {
	b := newBench(t)
	var got []string
	b.config.Live = func(_ context.Context, env tool.Environment) func(string, int64, []byte) {
		return func(stream string, _ int64, p []byte) { got = append(got, string(env)+" "+stream+" "+string(p)) }
	}
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		if task.Live != nil {
			task.Live("stdout", 0, []byte("x"))
		}
		return ended("x", ""), nil
	}
	b.execute(t, t.Context(), request())
	b.execute(t, t.Context(), request(func(r *tool.Request) { r.Stream = true }))
	if diff := cmp.Diff([]string{"host stdout x"}, got); diff != "" {
		t.Error(diff)
	}
}
