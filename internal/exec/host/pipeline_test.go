package host

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/tool"
)

// station is the whole pipeline over the real sandbox, with a catalogue and a
// project on disk.
type station struct {
	exec.Executor
	project string
	printed chan struct{} // gets one once a streaming request has printed something
}

const entries = `
kind: Tool
name: file_read
source: custom
command: [python3, -I, file_read.py]
input_schema: {type: object, required: [path], properties: {path: {type: string}}}
output_schema: {type: object, required: [text]}
---
kind: Tool
name: build
source: custom
command: [sh, -c, "mkdir -p build && printf 42 > build/output.txt && echo done"]
capability: {writes: true}
---
kind: Tool
name: fails
source: custom
command: [sh, -c, "echo out; echo 'went wrong ' >&2; exit 3"]
---
kind: Tool
name: missing
source: custom
command: [no-such-command-here]
---
kind: Tool
name: count
source: custom
code: |
  import os
  print("counting")
  result = {"files": len(os.listdir(".")), "given": input_data.get("n")}
---
kind: Project
id: project-1
host_sandbox_path: DIR
env: {GREETING: hello}
protect: [.git/hooks]
---
kind: Project
id: strict
host_sandbox_path: DIR
read_only: true
`

const fileRead = `
import json, sys
given = json.load(sys.stdin)
print(json.dumps({"text": open(given["path"]).read()}))
`

func newStation(t *testing.T) *station {
	t.Helper()
	project, dir := projectDir(t), t.TempDir()
	for name, content := range map[string]string{
		filepath.Join(dir, "entries.yaml"):     strings.ReplaceAll(entries, "DIR", project),
		filepath.Join(dir, "file_read.py"):     fileRead,
		filepath.Join(project, "src/main.py"):  "print('é')\n",
		filepath.Join(project, ".git/hooks/x"): "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	source, err := catalog.Open(t.Context(), catalog.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Err(); err != nil {
		t.Fatal(err)
	}
	s := &station{project: project, printed: make(chan struct{}, 1)}
	s.Executor, err = exec.New(exec.Config{
		Catalogue: source, Host: newBackend(t, tool.IsolationFull, Config{}), HostIsolation: tool.IsolationFull,
		Live: func(context.Context, tool.Environment) func(string, int64, []byte) {
			return func(string, int64, []byte) {
				select {
				case s.printed <- struct{}{}:
				default:
				}
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *station) run(t *testing.T, name, input string, changes ...func(*tool.Request)) *tool.Result {
	t.Helper()
	r := &tool.Request{
		Envelope: tool.Envelope{ID: "r-1"}, Pool: tool.DefaultPool, Priority: tool.Normal,
		Project: "project-1", Tool: name, Input: json.RawMessage(input),
	}
	for _, change := range changes {
		change(r)
	}
	res := s.Execute(t.Context(), r)
	t.Cleanup(res.Close)
	if res.Fault != nil {
		t.Fatalf("fault: %v", res.Fault)
	}
	return res
}

func inline(code string, c tool.Capability) func(*tool.Request) {
	return func(r *tool.Request) { r.Inline = &tool.Inline{Source: "custom", Code: code, Capability: c} }
}

func wantError(t *testing.T, res *tool.Result, code tool.Code, message string) {
	t.Helper()
	if res.Error == nil || res.Error.Code != code || !strings.Contains(res.Error.Message, message) {
		t.Errorf("got %v, want %s: %s", res.Error, code, message)
	}
}

func wantText(t *testing.T, p *tool.Payload, want string, document bool) {
	t.Helper()
	if p == nil || p.Document != document || text(t, p.Content) != want {
		t.Errorf("got %+v, want %q", p, want)
	}
}

func TestPipelineReadsAFile(t *testing.T) {
	s := newStation(t)
	for _, path := range []string{"src/main.py", s.project + "/src/main.py"} {
		res := s.run(t, "file_read", `{"path": "`+path+`"}`)
		if res.Error != nil {
			t.Fatal(res.Error)
		}
		wantText(t, res.Output, `{"text": "print('\u00e9')\n"}`+"\n", true)
		wantText(t, res.Stderr, "", false)
		if m := res.Metadata; m.Process.ExitCode != 0 || m.Sandbox.Isolation != tool.IsolationFull || m.Environment.DecidedBy != tool.DecidedBySystem ||
			m.Limits.TimeoutSeconds != 120 || m.Container != nil || res.Duration <= 0 {
			t.Errorf("metadata %+v", m)
		}
	}
}

func TestPipelineBringsBackOutputs(t *testing.T) {
	s := newStation(t)
	res := s.run(t, "build", "{}", func(r *tool.Request) { r.Outputs = []string{"/workspace/build/output.txt"} })
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	wantText(t, res.Output, "done\n", false)
	if len(res.Files) != 1 || res.Files[0].HostPath != s.project+"/build/output.txt" || res.Files[0].SizeBytes != 2 || res.Files[0].ContainerPath != "" {
		t.Errorf("files %+v", res.Files)
	}
	found := false
	for _, c := range res.Changes {
		found = found || c == tool.Change{Path: "build/output.txt", Change: tool.Created}
	}
	if !found {
		t.Errorf("changes %+v", res.Changes)
	}
}

func TestPipelineTextsOfErrors(t *testing.T) {
	s := newStation(t)
	res := s.run(t, "fails", "{}")
	wantError(t, res, tool.ExitStatus, "Execution failed (exit code 3): went wrong")
	wantText(t, res.Output, "out\n", false)
	if strings.HasSuffix(res.Error.Message, " ") {
		t.Errorf("trailing white space: %q", res.Error.Message)
	}
	wantError(t, s.run(t, "missing", "{}"), tool.StartFailed, "Execution failed (exit code -1): no-such-command-here")
	res = s.run(t, "", "{}", inline("while True: pass", tool.Capability{}), func(r *tool.Request) { r.Limits.TimeoutSeconds = 0.5 })
	wantError(t, res, tool.TimedOut, "Execution timed out after 0.5s")
	if !res.Metadata.Process.TimedOut || res.Tool != tool.InlineName {
		t.Errorf("%+v of %s", res.Metadata.Process, res.Tool)
	}
	wantError(t, s.run(t, "", "{}", inline("result = float('nan')", tool.Capability{})), tool.InvalidOutput, "result")
	wantError(t, s.run(t, "", "{}", inline("1/0", tool.Capability{})), tool.ExitStatus, "ZeroDivisionError")
	wantError(t, s.run(t, "file_read", `{"path": 5}`), tool.InvalidInput, "/path")
	wantError(t, s.run(t, "file_read", `{"path": "../x"}`), tool.PathEscape, "/input/path")
	wantError(t, s.run(t, "build", "{}", func(r *tool.Request) { r.Project = "strict" }), tool.ReadOnly, "strict")
	res = s.run(t, "", "{}", inline("b = bytearray(1 << 30)", tool.Capability{}), func(r *tool.Request) { r.Limits.MemoryBytes = 64 << 20 })
	if res.Status() != tool.StatusFailed {
		t.Errorf("memory: got %v", res.Error)
	}
}

func TestPipelineRunsCodeOfTheCatalogue(t *testing.T) {
	s := newStation(t)
	res := s.run(t, "count", `{"n": 9007199254740993}`)
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	wantText(t, res.Output, "counting\n", false)
	wantText(t, res.Value, `{"files":2,"given":9007199254740993}`, true)
	if res.Stdout != nil || res.Stderr != nil {
		t.Errorf("got %+v", res)
	}
}

func TestPipelineWritesOnlyWhereItMay(t *testing.T) {
	s := newStation(t)
	const code = "open('written', 'w').write('x')"
	wantError(t, s.run(t, "", "{}", inline(code, tool.Capability{})), tool.ExitStatus, "Errno")
	if _, err := os.Stat(filepath.Join(s.project, "written")); err == nil {
		t.Error("code without capability.writes wrote")
	}
	res := s.run(t, "", "{}", inline(code+"\nopen('.git/hooks/x', 'w')", tool.Capability{Writes: true}))
	wantError(t, res, tool.ExitStatus, "Errno")
	if _, err := os.Stat(filepath.Join(s.project, "written")); err != nil {
		t.Errorf("code with capability.writes: %v", err)
	}
}

func TestPipelineIsCancelled(t *testing.T) {
	s := newStation(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		<-s.printed
		cancel(tool.ErrCancelled)
	}()
	r := &tool.Request{
		Envelope: tool.Envelope{ID: "r-1"}, Pool: tool.DefaultPool, Project: "project-1", Input: json.RawMessage("{}"), Stream: true,
		Inline: &tool.Inline{Code: "print('half', flush=True)\nwhile True: pass"},
	}
	res := s.Execute(ctx, r)
	defer res.Close()
	if res.Status() != tool.StatusCancelled || res.Fault != nil {
		t.Errorf("got %v, %v", res.Error, res.Fault)
	}
	wantText(t, res.Output, "half\n", false)
}
