package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const policyCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
protect: [kept, .git/hooks]
env: {GREETING: hello, SHARED: project}
defaults: {timeout_seconds: 7, pids: 20}
maximum: {timeout_seconds: 20, memory_bytes: 268435456, cpu_seconds: 5}
---
kind: Tool
name: variables
code: |
  import os
  result = dict(os.environ)
env: {SHARED: tool}
env_from: [CONTRACT_TOKEN]
---
kind: Tool
name: slow
command: [cat]
limits: {timeout_seconds: 60, open_files: 100}
---
kind: Tool
name: writer
code: |
  import os
  for name in ('free', 'kept/x', '.git/hooks/x'):
      try:
          with open(name, 'w') as f: f.write(name)
          print('wrote', name)
      except OSError as e:
          print(name, os.strerror(e.errno))
capability: {writes: true}
`

// contractToken is a value that the worker takes from its environment.
const contractToken = "token-that-is-never-logged"

// What operators lay down holds, whatever a request wishes, and the result
// says what was in force.
func TestContractPolicy(t *testing.T) {
	t.Parallel()
	c := &contract{data: t.TempDir(), base: t.TempDir()}
	c.catalog = c.mkdir(t, "catalog")
	c.catalogue(t, "entries.yaml", policyCatalogue)
	root := c.mkdir(t, "p")
	c.mkdir(t, "p/kept")
	c.mkdir(t, "p/.git/hooks")
	c.start(t, []string{"CONTRACT_TOKEN=" + contractToken, "CONTRACT_SECRET=other"}, "--catalog", c.catalog)

	t.Run("limits", func(t *testing.T) { c.checkLimits(t) })
	t.Run("environment", func(t *testing.T) {
		doc := c.ask(t, "p", "environment", call("p", "variables", ""))
		var env map[string]string
		if err := json.Unmarshal(doc.Value, &env); err != nil {
			t.Fatalf("%s: %v", doc.Raw, err)
		}
		for name, want := range map[string]string{"GREETING": "hello", "SHARED": "tool", "CONTRACT_TOKEN": contractToken} {
			if env[name] != want {
				t.Errorf("%s is %q, want %q", name, env[name], want)
			}
			delete(env, name)
		}
		for _, name := range []string{"PATH", "LANG", "TERM"} {
			if env[name] == "" {
				t.Errorf("%s is missing", name)
			}
			delete(env, name)
		}
		if len(env) > 0 {
			t.Errorf("and there is %v", env)
		}
		if strings.Contains(c.worker.Log(), contractToken) {
			t.Error("the worker logged the token")
		}
	})
	t.Run("protect", func(t *testing.T) {
		doc := c.ask(t, "p", "protect", call("p", "writer", `,"outputs":["free"]`))
		const want = "wrote free\nkept/x Read-only file system\n.git/hooks/x Read-only file system\n"
		if got := textOf(t, doc); !doc.Success || got != want {
			t.Errorf("output %q, want %q", got, want)
		}
		if !slices.Equal(doc.Changes, []tool.Change{{Path: "free", Change: "created"}}) {
			t.Errorf("changes %+v", doc.Changes)
		}
		sum := sha256.Sum256([]byte("free"))
		if !slices.Equal(doc.Files, []tool.File{{HostPath: filepath.Join(root, "free"), SizeBytes: 4, SHA256: hex.EncodeToString(sum[:])}}) {
			t.Errorf("files %+v", doc.Files)
		}
		if u := doc.Metadata.Usage; u == nil || u.MaxRSSBytes == 0 {
			t.Errorf("usage %+v", u)
		}
	})
	t.Run("writes are declared", func(t *testing.T) {
		doc := c.ask(t, "p", "undeclared", inline("p", "open('undeclared', 'w')", ""))
		if doc.Error == nil || doc.Error.Code != tool.ExitStatus || !strings.Contains(doc.Error.Message, "Read-only file system") {
			t.Errorf("%s", doc.Raw)
		}
		if _, err := os.Lstat(filepath.Join(root, "undeclared")); err == nil {
			t.Error("it was written")
		}
	})
}

func (c *contract) checkLimits(t *testing.T) {
	code := tool.Limits{TimeoutSeconds: 7, MaxOutputBytes: 1 << 20, MemoryBytes: 256 << 20, CPUs: 1, CPUSeconds: 5, PIDs: 20, FileSizeBytes: 1 << 30, OpenFiles: 256}
	command := code
	command.TimeoutSeconds, command.MaxOutputBytes, command.OpenFiles = 20, 50<<20, 100
	wish := code
	wish.TimeoutSeconds, wish.MemoryBytes, wish.PIDs, wish.OpenFiles = 0.5, 100<<20, 10, 50
	for id, test := range map[string]struct {
		data    string
		want    tool.Limits
		clamped []string
	}{
		"of-nobody":  {inline("p", "1", ""), code, []string{"memory_bytes", "cpu_seconds"}},
		"of-tool":    {call("p", "slow", ""), command, []string{"timeout_seconds", "memory_bytes", "cpu_seconds"}},
		"of-request": {inline("p", "1", `,"limits":{"timeout_seconds":0.5,"memory_bytes":104857600,"pids":10,"open_files":50}`), wish, []string{"cpu_seconds"}},
		"of-nobody-less": {inline("p", "1", `,"limits":{"timeout_seconds":1e9,"memory_bytes":9007199254740991,"cpu_seconds":1e9}`),
			func() tool.Limits { l := code; l.TimeoutSeconds = 20; return l }(), []string{"timeout_seconds", "memory_bytes", "cpu_seconds"}},
	} {
		doc := c.ask(t, "p", id, test.data)
		in := doc.Metadata.Limits
		if in == nil || in.Limits != test.want || !slices.Equal(in.Clamped, test.clamped) {
			t.Errorf("%s: limits in force %+v, want %+v, clamped %v", id, in, test.want, test.clamped)
		}
	}
}

// textOf is the output of inline code.
func textOf(t *testing.T, doc *event.ResultDoc) string {
	t.Helper()
	var text string
	if err := json.Unmarshal(doc.Output, &text); err != nil {
		t.Fatalf("output %s: %v", doc.Output, err)
	}
	return text
}
