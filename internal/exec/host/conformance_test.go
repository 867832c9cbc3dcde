package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/exectest"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	os.Exit(m.Run())
}

// levels are the isolation levels, and what each promises.
var levels = map[tool.Isolation]exectest.Subject{
	tool.IsolationNone:    {Processes: true, CodeProcesses: true},
	tool.IsolationReduced: {Processes: true, ReadOnly: true, NoNetwork: true, Memory: true, Adds: []string{"TMPDIR"}},
	tool.IsolationFull: {
		Processes: true, CodeProcesses: true, ReadOnly: true, Protects: true, PrivateTmp: true, NoNetwork: true, Memory: true,
	},
}

func TestConformance(t *testing.T) {
	for level, promises := range levels {
		t.Run(string(level), func(t *testing.T) {
			backend := newBackend(t, level, Config{})
			exectest.Run(t, func(t *testing.T) exectest.Subject {
				s := promises
				s.Backend, s.Environment = backend, tool.Host
				s.Root = projectDir(t)
				s.Inside = s.Root
				return s
			})
		})
	}
}

// newBackend makes a backend at a level. On a machine that cannot give the
// level the test fails: what is not tried is not known to work.
func newBackend(t *testing.T, level tool.Isolation, c Config) *Backend {
	t.Helper()
	runner, err := sandbox.New(sandbox.Config{Require: level, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	c.Runner = runner
	b, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func projectDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
