package catalog

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

// writeFiles writes files below a fresh directory and returns it, links resolved.
func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// faultLines are the faults with dir cut off their places.
func faultLines(dir string, faults Faults) []string {
	lines := []string{}
	for _, f := range faults {
		lines = append(lines, strings.TrimPrefix(f.String(), dir+"/"))
	}
	return lines
}

// wholeSample has every member of the protocol's section 3.
const wholeSample = `# tools and projects
kind: Tool
name: file_read
description: Read a text file of the project.
enabled: true                  # false: rejected as forbidden
source: custom
command: [python3, -I, file_read.py]
input_schema: {type: object, required: [path], properties: {path: {type: string}}}
output_schema: {}
capability: {writes: false, network: false}
tool_env: ""
environments: [host, Container]
isolation: full
idempotent: true
env: {}
env_from: [API_TOKEN]
limits: {timeout_seconds: 120, memory_bytes: 536870912, cpus: 1, pids: 128, concurrency: 8}
---
kind: Project
id: project-1
enabled: true
execution_environment: ""
host_sandbox_path: /srv/projects/project-1
read_only: false
allow:
  environments: [host, container]
  inline: {enabled: true, environments: [host, container], writes: true, network: false}
  tools: ["*"]
  pools: ["*"]
isolation: full
protect: [.devcontainer, .git/hooks, .git/config]
env: {GREETING: hello}
defaults: {timeout_seconds: 30}
maximum: {timeout_seconds: 600, concurrency: 16}
resources:
  - {type: container-instance, container_id: my-container, workspace_folder: /workspace}
  - {type: container-instance, image: "ghcr.io/org/devimage:latest"}
  - {type: devcontainer-instance, container_id: abc123, workspace_folder: /workspace}
  - {type: devcontainer-file, path: .devcontainer/devcontainer.json, sha256: "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", trusted: false}
`

func TestLoadDirectoryReadsEveryMember(t *testing.T) {
	dir := writeFiles(t, map[string]string{"all.yaml": wholeSample})
	s, faults, err := LoadDirectory(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	got, _ := s.Tool("file_read")
	want := &tool.Definition{
		Name: "file_read", Description: "Read a text file of the project.", Source: "custom",
		Command:      []string{"python3", "-I", "file_read.py"},
		Dir:          dir,
		InputSchema:  []byte(`{"properties":{"path":{"type":"string"}},"required":["path"],"type":"object"}`),
		OutputSchema: []byte(`{}`),
		Environments: []tool.Environment{tool.Host, tool.Container},
		Isolation:    tool.IsolationFull,
		Env:          map[string]string{},
		EnvFrom:      []string{"API_TOKEN"},
		Limits:       tool.Limits{TimeoutSeconds: 120, MemoryBytes: 512 << 20, CPUs: 1, PIDs: 128},
		Concurrency:  8,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tool (-want +got):\n%s", diff)
	}
	both := []tool.Environment{tool.Host, tool.Container}
	project, _ := s.Project("project-1")
	wantProject := &tool.Project{
		ID: "project-1", HostSandboxPath: "/srv/projects/project-1",
		Allow: tool.Allow{
			Environments: both,
			Inline:       tool.AllowInline{Enabled: true, Environments: both, Writes: true},
			Tools:        []string{"*"}, Pools: []string{"*"},
		},
		Isolation: tool.IsolationFull,
		Protect:   []string{".devcontainer", ".git/hooks", ".git/config"},
		Env:       map[string]string{"GREETING": "hello"},
		Defaults:  tool.Limits{TimeoutSeconds: 30}, Maximum: tool.Limits{TimeoutSeconds: 600}, Concurrency: 16,
		Resources: []tool.Resource{
			{Type: tool.ContainerInstance, ContainerID: "my-container", WorkspaceFolder: "/workspace"},
			{Type: tool.ContainerInstance, Image: "ghcr.io/org/devimage:latest", WorkspaceFolder: "/workspace"},
			{Type: tool.DevcontainerInstance, ContainerID: "abc123", WorkspaceFolder: "/workspace"},
			{Type: tool.DevcontainerFile, WorkspaceFolder: "/workspace", Path: ".devcontainer/devcontainer.json",
				SHA256: "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
		},
	}
	if diff := cmp.Diff(wantProject, project); diff != "" {
		t.Errorf("project (-want +got):\n%s", diff)
	}
	if s.InputSchema("file_read") == nil || s.OutputSchema("file_read") == nil {
		t.Error("the schemas are not compiled")
	}
}

func TestLoadDirectoryDefaults(t *testing.T) {
	dir := writeFiles(t, map[string]string{"min.yml": "kind: Tool\nname: t\ncode: print(1)\n---\nkind: Project\nid: p\n" +
		"---\nkind: Project\nid: narrow\nallow: {inline: {network: true}, tools: [], environments: [host]}\n"})
	s, faults, err := LoadDirectory(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	d, _ := s.Tool("t")
	if diff := cmp.Diff(&tool.Definition{Name: "t", Source: "custom", Code: "print(1)", Dir: dir}, d); diff != "" {
		t.Errorf("tool (-want +got):\n%s", diff)
	}
	p, _ := s.Project("p")
	if diff := cmp.Diff(&tool.Project{ID: "p", Allow: tool.DefaultAllow()}, p); diff != "" {
		t.Errorf("project (-want +got):\n%s", diff)
	}
	want := tool.DefaultAllow()
	want.Inline.Network, want.Tools, want.Environments = true, []string{}, []tool.Environment{tool.Host}
	narrow, _ := s.Project("narrow")
	if diff := cmp.Diff(want, narrow.Allow); diff != "" {
		t.Errorf("an absent member of allow is not its default (-want +got):\n%s", diff)
	}
	if s.InputSchema("t") != nil || s.OutputSchema("nosuch") != nil {
		t.Error("a tool without schemas has one")
	}
}

func TestLoadDirectoryFindsFiles(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml":          "kind: Tool\nname: a\ncommand: [a]\n",
		"sub/deep/b.yml":  "kind: Tool\nname: b\ncommand: [b]\n",
		".hidden.yaml":    "kind: Tool\nname: hidden\ncommand: [a]\n",
		".git/c.yaml":     "kind: Tool\nname: c\ncommand: [a]\n",
		"notes.txt":       "kind: Tool\nname: d\ncommand: [a]\n",
		"e.yaml~":         "kind: Tool\nname: e\ncommand: [a]\n",
		"empty.yaml":      "",
		"comments.yaml":   "# nothing\n---\n# here\n---\n...\n",
		"..data/f.yaml":   "kind: Tool\nname: f\ncommand: [f]\n",
		"crlf.yaml":       "\xef\xbb\xbfkind: Tool\r\nname: g\r\ncommand: [g]\r\n---\r\nkind: Tool\r\nname: h\r\ncode: |\r\n  print(1)\r\n  print(2)\r\n",
		"dir.yaml/i.yaml": "kind: Tool\nname: i\ncommand: [i]\n",
	})
	// A mounted configuration is links into a hidden directory.
	if err := os.Symlink("..data/f.yaml", filepath.Join(dir, "f.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	s, faults, err := LoadDirectory(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	var names []string
	for _, e := range s.List() {
		names = append(names, e.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "f", "g", "h", "i"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	b, _ := s.Tool("b")
	if b.Dir != filepath.Join(dir, "sub", "deep") {
		t.Errorf("Dir of b: %s", b.Dir)
	}
	h, _ := s.Tool("h")
	if h.Code != "print(1)\nprint(2)\n" {
		t.Errorf("code with CRLF: %q", h.Code)
	}
	if !strings.HasSuffix(s.List()[4].Place, "crlf.yaml:5") {
		t.Errorf("place of h: %s", s.List()[4].Place)
	}
}

func TestLoadDirectoryUnreadable(t *testing.T) {
	if _, _, err := LoadDirectory(filepath.Join(t.TempDir(), "nosuch")); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a missing directory: %v", err)
	}
	dir := writeFiles(t, map[string]string{"good.yaml": "kind: Tool\nname: a\ncommand: [a]\n"})
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling.yaml")); err != nil {
		t.Fatal(err)
	}
	s, faults, err := LoadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) != 1 || !strings.HasSuffix(faults[0].Place.File, "dangling.yaml") {
		t.Errorf("a dangling link: %v", faults)
	}
	if _, ok := s.Tool("a"); !ok {
		t.Error("the readable file is not loaded")
	}
}

func TestCollision(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml": "kind: Tool\nname: same\ncommand: [a]\n---\nkind: Project\nid: same\n",
		"b.yaml": "\nkind: Tool\nname: same\ncommand: [b]\n",
	})
	s, faults, err := LoadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`b.yaml:2: tool "same": defined twice: at ` + dir + `/a.yaml:1 and at ` + dir + `/b.yaml:2`}
	if diff := cmp.Diff(want, faultLines(dir, faults)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, ok := s.Tool("same"); ok {
		t.Error("one of two entries of a name was taken")
	}
	if _, ok := s.Project("same"); !ok {
		t.Error("a project may have the name of a tool")
	}
}

// reload changes one file and loads again.
func reload(t *testing.T, d *directory, prev *Snapshot, file, text string) (*Snapshot, Faults) {
	t.Helper()
	writeFile(t, filepath.Join(d.dir, file), text)
	next, faults, err := d.refresh(context.Background(), prev)
	if err != nil {
		t.Fatal(err)
	}
	if next == nil {
		t.Fatal("the change was not seen")
	}
	return next, faults
}

func commandOf(s *Snapshot, name string) string {
	d, ok := s.Tool(name)
	if !ok {
		return ""
	}
	return strings.Join(d.Command, " ")
}

func TestReloadKeepsTheLastGood(t *testing.T) {
	const good = "kind: Tool\nname: a\ncommand: [a1]\n---\nkind: Tool\nname: b\ncommand: [b1]\n---\nkind: Tool\nname: c\ncommand: [c1]\n"
	tests := []struct {
		name, text string
		want       map[string]string // command by name, "" for absent
		faults     int
	}{
		{"changed", "kind: Tool\nname: a\ncommand: [a2]\n", map[string]string{"a": "a2", "b": "", "c": ""}, 0},
		{"bad member", "kind: Tool\nname: a\ncommand: a2\n---\nkind: Tool\nname: b\ncommand: [b2]\n",
			map[string]string{"a": "a1", "b": "b2", "c": ""}, 1},
		{"broken syntax keeps what is not found", "kind: Tool\nname: a\ncommand: [a2\n---\nkind: Tool\nname: b\ncommand: [b2]\n",
			map[string]string{"a": "a1", "b": "b2", "c": "c1"}, 1},
		{"name gone wrong", "kind: Tool\nname: 'a b'\ncommand: [a2]\n---\nkind: Tool\nname: b\ncommand: [b2]\n",
			map[string]string{"a": "a1", "b": "b2", "c": "c1"}, 1},
		{"twice", good + "---\nkind: Tool\nname: a\ncommand: [a3]\n", map[string]string{"a": "a1", "b": "b1", "c": "c1"}, 1},
		{"emptied", "", map[string]string{"a": "", "b": "", "c": ""}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := &directory{dir: writeFiles(t, map[string]string{"x.yaml": good})}
			first, faults, err := d.refresh(context.Background(), newSnapshot())
			if err != nil || len(faults) > 0 {
				t.Fatal(err, faults)
			}
			next, faults := reload(t, d, first, "x.yaml", tt.text)
			if len(faults) != tt.faults {
				t.Errorf("faults: %v, want %d", faults, tt.faults)
			}
			for name, want := range tt.want {
				if got := commandOf(next, name); got != want {
					t.Errorf("%s: command %q, want %q", name, got, want)
				}
			}
			// The last good one stays however often the bad one is read.
			again, faults := reload(t, d, next, "y.yaml", "# another file\n")
			if len(faults) != tt.faults {
				t.Errorf("faults of the second reload: %v, want %d", faults, tt.faults)
			}
			for name, want := range tt.want {
				if got := commandOf(again, name); got != want {
					t.Errorf("%s after the second reload: command %q, want %q", name, got, want)
				}
			}
		})
	}
}

func TestReloadParsesOnlyWhatChanged(t *testing.T) {
	d := &directory{dir: writeFiles(t, map[string]string{"x.yaml": "kind: Tool\nname: a\ncommand: [a]\n---\nkind: Tool\nname: b\ncommand: [b]\n"})}
	first, _, err := d.refresh(context.Background(), newSnapshot())
	if err != nil {
		t.Fatal(err)
	}
	next, _ := reload(t, d, first, "x.yaml", "# moved down\nkind: Tool\nname: a\ncommand: [a, again]\n---\nkind: Tool\nname: b\ncommand: [b]\n")
	before, _ := first.Tool("b")
	after, _ := next.Tool("b")
	if before != after {
		t.Error("the unchanged document was parsed again")
	}
	if place := next.List()[1].Place; !strings.HasSuffix(place, "x.yaml:6") {
		t.Errorf("the unchanged document is said to be at %s", place)
	}
	if first.Revision() == next.Revision() {
		t.Error("another state has the same revision")
	}
	back, _ := reload(t, d, next, "x.yaml", "kind: Tool\nname: a\ncommand: [a]\n---\nkind: Tool\nname: b\ncommand: [b]\n")
	if back.Revision() != first.Revision() {
		t.Error("the same state has another revision")
	}
}
