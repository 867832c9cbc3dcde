package exec

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/tool"
)

// bench is a pipeline over fake backends, with a project on disk.
type bench struct {
	host, container *fakeBackend
	config          Config
	dir             string // of project-1, the one that has everything
}

const benchCatalogue = `
kind: Tool
name: read
source: custom
command: [cat, --]
input_schema: {type: object, properties: {path: {type: string}, count: {type: integer}}, additionalProperties: true}
env: {TOOL: "1", SHARED: tool}
env_from: [SECRET]
limits: {timeout_seconds: 7}
---
kind: Tool
name: write
source: custom
command: [tee]
capability: {writes: true}
---
kind: Tool
name: coded
source: custom
code: print(1)
output_schema: {type: object, required: [n]}
---
kind: Tool
name: typed
source: custom
command: ["true"]
output_schema: {type: object, required: [n]}
---
kind: Tool
name: boxed
source: custom
command: ["true"]
tool_env: container
---
kind: Tool
name: locked
source: custom
command: ["true"]
enabled: false
---
kind: Project
id: project-1
host_sandbox_path: DIR
env: {GREETING: hello, SHARED: project}
protect: [.git/hooks]
maximum: {timeout_seconds: 60}
resources:
  - {type: container-instance, container_id: box, workspace_folder: /workspace}
---
kind: Project
id: frozen
host_sandbox_path: DIR
read_only: true
---
kind: Project
id: bare
`

func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{host: &fakeBackend{}, container: &fakeBackend{}, dir: dir}
	b.config = Config{
		Catalogue:     newCatalogue(t, strings.ReplaceAll(benchCatalogue, "DIR", dir)),
		Host:          b.host,
		HostIsolation: tool.IsolationFull,
		Container:     b.container,
		DefaultRoot:   filepath.Join(t.TempDir(), "sandbox"),
		SpoolDir:      t.TempDir(),
		LookUpEnv: func(name string) (string, bool) {
			value, ok := map[string]string{"PATH": "/bin", "LANG": "C", "TERM": "xterm", "SECRET": "s3cret", "HOME": "/root"}[name]
			return value, ok
		},
	}
	return b
}

// request is a good request, changed by each of the changes.
func request(changes ...func(*tool.Request)) *tool.Request {
	r := &tool.Request{
		Envelope: tool.Envelope{ID: "r-1"}, Pool: "default", Priority: tool.Normal,
		Project: "project-1", Tool: "read", Input: json.RawMessage(`{}`), Plan: tool.Plan{ID: "plan-7"},
	}
	for _, change := range changes {
		change(r)
	}
	return r
}

func inlineCode(code string) func(*tool.Request) {
	return func(r *tool.Request) { r.Tool, r.Inline = "", &tool.Inline{Name: "sum", Source: "custom", Code: code} }
}

func calling(name string) func(*tool.Request) { return func(r *tool.Request) { r.Tool = name } }

func in(project string) func(*tool.Request) { return func(r *tool.Request) { r.Project = project } }

func with(input string) func(*tool.Request) {
	return func(r *tool.Request) { r.Input = json.RawMessage(input) }
}

func inContainer(r *tool.Request) { r.ToolEnv = tool.Container }

func (b *bench) execute(t *testing.T, ctx context.Context, r *tool.Request) *tool.Result {
	t.Helper()
	pipeline, err := New(b.config)
	if err != nil {
		t.Fatal(err)
	}
	res := pipeline.Execute(ctx, r)
	t.Cleanup(res.Close)
	return res
}

func TestPipelineRunsACommand(t *testing.T) {
	b := newBench(t)
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := ended("{\"n\": 9007199254740993}\n", "warned\xff")
		e.Duration, e.Usage = 1500*time.Millisecond, tool.Usage{CPUMS: 12}
		e.Sandbox = &tool.SandboxMetadata{Isolation: tool.IsolationFull}
		e.Changes = []tool.Change{{Path: "a", Change: tool.Created}}
		return e, nil
	}
	res := b.execute(t, t.Context(), request(with(`{"path": "src/x", "count": 5}`), func(r *tool.Request) { r.Limits.TimeoutSeconds = 90 }))
	if res.Error != nil || res.Fault != nil || res.Status() != tool.StatusSucceeded {
		t.Fatalf("got %v, %v", res.Error, res.Fault)
	}
	if res.RequestID != "r-1" || res.Project != "project-1" || res.PlanID != "plan-7" || res.Tool != "read" || res.Duration != 1500*time.Millisecond {
		t.Errorf("got %+v", res)
	}
	for _, want := range []struct {
		member   string
		payload  *tool.Payload
		text     string
		document bool
	}{
		{"output", res.Output, "{\"n\": 9007199254740993}\n", true},
		{"stdout", res.Stdout, "{\"n\": 9007199254740993}\n", false},
		{"stderr", res.Stderr, "warned\uFFFD", false},
	} {
		if text, document := readPayload(t, want.payload); text != want.text || document != want.document {
			t.Errorf("%s: got %q, document %v", want.member, text, document)
		}
	}
	task := b.host.tasks[0]
	wantEnv := []string{"GREETING=hello", "LANG=C", "PATH=/bin", "SECRET=s3cret", "SHARED=tool", "TERM=xterm", "TOOL=1"}
	if diff := cmp.Diff(wantEnv, task.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cat", "--"}, task.Argv); diff != "" {
		t.Error(diff)
	}
	if task.Root != b.dir || string(task.Input) != `{"path": "src/x", "count": 5}` || task.Writes || task.Network || task.Code != "" || task.Live != nil {
		t.Errorf("task %+v", task)
	}
	m := res.Metadata
	if *m.Environment != (tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedBySystem}) || m.Container != nil || m.Usage.CPUMS != 12 {
		t.Errorf("metadata %+v", m)
	}
	if m.Limits.TimeoutSeconds != 60 || len(m.Limits.Clamped) != 1 || task.Limits.TimeoutSeconds != 60 {
		t.Errorf("limits %+v", m.Limits)
	}
	if *m.Process != (tool.ProcessMetadata{}) || m.Sandbox.Isolation != tool.IsolationFull || len(res.Changes) != 1 {
		t.Errorf("metadata %+v, changes %v", m, res.Changes)
	}
}

func TestPipelineRunsCode(t *testing.T) {
	b := newBench(t)
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := printed("{\"looks\": \"like JSON\"}")
		e.Value, e.Truncated = json.RawMessage(`null`), true
		return e, nil
	}
	res := b.execute(t, t.Context(), request(inlineCode("result = None")))
	if res.Error != nil || res.Tool != "sum" || !res.Truncated || res.Stdout != nil || res.Stderr != nil {
		t.Fatalf("got %+v", res)
	}
	if text, document := readPayload(t, res.Output); document || text != `{"looks": "like JSON"}` {
		t.Errorf("output %q, document %v", text, document)
	}
	if value, document := readPayload(t, res.Value); !document || value != "null" {
		t.Errorf("value %q, document %v", value, document)
	}
	if task := b.host.tasks[0]; task.Code != "result = None" || task.Name != "sum" || task.Argv != nil || task.Definition != nil || task.Limits.TimeoutSeconds != 30 {
		t.Errorf("task %+v", task)
	}
}

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

func TestPipelineWithoutAContainerBackend(t *testing.T) {
	b := newBench(t)
	b.config.Container = nil
	for _, r := range []*tool.Request{request(inContainer), request(calling("boxed")), request(in("bare"), inContainer)} {
		res := b.execute(t, t.Context(), r)
		if res.Error == nil || res.Error.Code != tool.EnvironmentUnavailable || res.Error.Message != "container execution is not available" {
			t.Errorf("got %v", res.Error)
		}
		if e := res.Metadata.Environment; e == nil || e.Resolved != tool.Container {
			t.Errorf("environment %+v", e)
		}
	}
}

func TestPipelineMapsPathsOfAContainer(t *testing.T) {
	b := newBench(t)
	b.container.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := ended(`{"at": "/workspace/out.txt", "n": 1e2, "other": "/usr/lib"}`, "/workspace/err")
		e.Container = &tool.ContainerMetadata{ContainerID: "box", WorkspaceFolder: "/workspace"}
		return e, nil
	}
	if err := os.WriteFile(filepath.Join(b.dir, "out.txt"), []byte("42"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := b.execute(t, t.Context(), request(calling("write"), inContainer, with(`{"path": "`+b.dir+`/src", "l": ["`+b.dir+`", "/usr"]}`),
		func(r *tool.Request) { r.Outputs = []string{"/workspace/out.txt"} }))
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	task := b.container.tasks[0]
	if got := string(task.Input); got != `{"path":"/workspace/src","l":["/workspace","/usr"]}` {
		t.Errorf("input %s", got)
	}
	if text, document := readPayload(t, res.Output); !document || strings.TrimSpace(text) != `{"at":"`+b.dir+`/out.txt","n":1e2,"other":"/usr/lib"}` {
		t.Errorf("output %s, document %v", text, document)
	}
	if text, _ := readPayload(t, res.Stdout); !strings.Contains(text, `"/workspace/out.txt"`) {
		t.Errorf("stdout %s", text)
	}
	if text, _ := readPayload(t, res.Stderr); text != "/workspace/err" {
		t.Errorf("stderr %s", text)
	}
	want := []tool.File{{
		ContainerPath: "/workspace/out.txt", HostPath: b.dir + "/out.txt", SizeBytes: 2,
		SHA256: "73475cb40a568e8da8a045ced110137e159f890ac4da883b6b17dc651b3a8049",
	}}
	if diff := cmp.Diff(want, res.Files); diff != "" {
		t.Error(diff)
	}
	if res.Metadata.Container.ContainerID != "box" || res.Metadata.Environment.DecidedBy != tool.DecidedByTool {
		t.Errorf("metadata %+v", res.Metadata)
	}
}

func TestPipelineMapsTextAndValueOfAContainer(t *testing.T) {
	b := newBench(t)
	b.container.run = func(context.Context, *Task) (*Ending, error) {
		e := printed("/workspace/a\n/workspaces/b\nsee /workspace/c\r\n/workspace\r\n/workspace/d")
		e.Value = json.RawMessage(`["/workspace/v"]`)
		return e, nil
	}
	res := b.execute(t, t.Context(), request(inlineCode("1"), inContainer))
	want := b.dir + "/a\n/workspaces/b\nsee /workspace/c\r\n" + b.dir + "\r\n" + b.dir + "/d"
	if text, document := readPayload(t, res.Output); text != want || document {
		t.Errorf("output %q", text)
	}
	if value, document := readPayload(t, res.Value); strings.TrimSpace(value) != `["`+b.dir+`/v"]` || !document {
		t.Errorf("value %q", value)
	}
}

// TestPipelineMapsAnAlias: the operator names the root through a symlink, and
// inside the sandbox it has only its real name.
func TestPipelineMapsAnAlias(t *testing.T) {
	b := newBench(t)
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(b.dir, alias); err != nil {
		t.Fatal(err)
	}
	b.config.Catalogue = newCatalogue(t, strings.ReplaceAll(benchCatalogue, "DIR", alias))
	if err := os.WriteFile(filepath.Join(b.dir, "out"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := request(calling("write"), with(`{"a_path": "`+alias+`/x", "b_path": "`+b.dir+`/y"}`), func(r *tool.Request) { r.Outputs = []string{alias + "/out"} })
	res := b.execute(t, t.Context(), r)
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	if task := b.host.tasks[0]; string(task.Input) != `{"a_path":"`+b.dir+`/x","b_path":"`+b.dir+`/y"}` || task.Root != b.dir {
		t.Errorf("task %s in %s", task.Input, task.Root)
	}
	if len(res.Files) != 1 || res.Files[0].HostPath != alias+"/out" {
		t.Errorf("files %+v", res.Files)
	}
	res = b.execute(t, t.Context(), request(inContainer, with(`{"a_path": "`+alias+`/x", "b_path": "`+b.dir+`/y"}`)))
	if res.Error != nil || string(b.container.tasks[0].Input) != `{"a_path":"/workspace/x","b_path":"/workspace/y"}` {
		t.Errorf("in a container: %v, %s", res.Error, b.container.tasks[0].Input)
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
			if cause == tool.ErrCancelled {
				if res.Error == nil || res.Status() != tool.StatusCancelled || res.Fault != nil {
					t.Errorf("cancelled: got %v, %v", res.Error, res.Fault)
				}
			} else if !errors.Is(res.Fault, tool.ErrDrained) || res.Output != nil {
				t.Errorf("drained: got %v, %v", res.Error, res.Fault)
			}
		}
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

func TestPipelineNotesChanges(t *testing.T) {
	for _, exitCode := range []int{0, 1} {
		b := newBench(t)
		for _, name := range []string{"modified", "deleted", "kept"} {
			if err := os.WriteFile(filepath.Join(b.dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		b.host.run = func(context.Context, *Task) (*Ending, error) {
			e := ended("", "")
			e.ExitCode = exitCode
			return e, errors.Join(
				os.WriteFile(filepath.Join(b.dir, "created"), nil, 0o600),
				os.WriteFile(filepath.Join(b.dir, "modified"), []byte("x"), 0o600),
				os.Remove(filepath.Join(b.dir, "deleted")))
		}
		res := b.execute(t, t.Context(), request(calling("write")))
		want := []tool.Change{{Path: "created", Change: tool.Created}, {Path: "deleted", Change: tool.Deleted}, {Path: "modified", Change: tool.Modified}}
		if diff := cmp.Diff(want, res.Changes); diff != "" || res.ChangesTruncated || (res.Error == nil) != (exitCode == 0) {
			t.Errorf("exit code %d, %v: %s", exitCode, res.Error, diff)
		}
	}
}

func TestPipelineDefaultRoot(t *testing.T) {
	b := newBench(t)
	res := b.execute(t, t.Context(), request(in("bare")))
	if res.Error != nil || b.host.tasks[0].Root != b.config.DefaultRoot+"/bare" {
		t.Errorf("got %v, %+v", res.Error, b.host.tasks)
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

// lateCatalogue has its entries only when it is asked once more.
type lateCatalogue struct {
	*catalog.Source
	asked int
	err   error
}

func (c *lateCatalogue) Snapshot() *catalog.Snapshot { return new(catalog.Snapshot) }

func (c *lateCatalogue) LookUp(ctx context.Context, kind catalog.Kind, name string) (*catalog.Snapshot, error) {
	c.asked++
	if c.err != nil {
		return nil, c.err
	}
	return c.Source.LookUp(ctx, kind, name)
}

func TestPipelineLooksUpOnceMore(t *testing.T) {
	b := newBench(t)
	late := &lateCatalogue{Source: b.config.Catalogue.(*catalog.Source)}
	b.config.Catalogue = late
	if res := b.execute(t, t.Context(), request()); res.Error != nil || late.asked != 1 {
		t.Errorf("got %v after %d look-ups", res.Error, late.asked)
	}
	late.err = errors.New("bucket unreachable")
	if res := b.execute(t, t.Context(), request()); !errors.Is(res.Fault, late.err) {
		t.Errorf("got %v, %v", res.Error, res.Fault)
	}
}

func TestNewRefusesWhatIsIncomplete(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Config){
		"catalogue":    func(c *Config) { c.Catalogue = nil },
		"host backend": func(c *Config) { c.Host = nil },
		"default root": func(c *Config) { c.DefaultRoot = "/" },
	} {
		config := b.config
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
