package exec

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

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
