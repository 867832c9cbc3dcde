package container_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/exec/exectest"
	"github.com/toolworker/toolworker/internal/tool"
)

// adds are what a container gives every process beside the task's environment.
var adds = []string{"HOME", "HOSTNAME", "TMPDIR", "PWD"}

// newBackend makes a backend that is closed after the test.
func newBackend(t testing.TB, change func(*container.Config)) *container.Backend {
	t.Helper()
	containertest.Need(t)
	c := container.Config{
		Engine: containertest.URL(), Worker: containertest.Worker(strings.ReplaceAll(t.Name(), "/", "-")),
		Executable: containertest.Program(t), Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}
	if change != nil {
		change(&c)
	}
	b, err := container.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close backend: %v", err)
		}
	})
	return b
}

// testWriter logs for a test; what comes after its end is dropped.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimSuffix(string(p), "\n"))
	}
	return len(p), nil
}

func newRoot(t testing.TB) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func project(r tool.Resource) *tool.Project {
	if r.WorkspaceFolder == "" {
		r.WorkspaceFolder = tool.DefaultWorkspaceFolder
	}
	return &tool.Project{ID: "exectest", Resources: []tool.Resource{r}}
}

// Every suite has one container and one project: a container for each test
// would cost more time than the tests.

func TestConformanceOfImageWithAgent(t *testing.T) {
	b, root := newBackend(t, nil), newRoot(t)
	p := project(tool.Resource{Type: tool.ContainerInstance, Image: containertest.Python(t)})
	exectest.Run(t, func(*testing.T) exectest.Subject {
		return exectest.Subject{
			Backend: b, Environment: tool.Container, Root: root, Inside: "/workspace", Project: p,
			Processes: true, ReadOnly: true, Protects: true, NoNetwork: true, Memory: true, Adds: adds,
		}
	})
}

func TestConformanceOfInstanceWithAgent(t *testing.T) {
	b, root := newBackend(t, nil), newRoot(t)
	id := containertest.Start(t, containertest.Python(t), root, nil)
	exectest.Run(t, func(*testing.T) exectest.Subject {
		return exectest.Subject{
			Backend: b, Environment: tool.Container, Root: root, Inside: "/workspace",
			Project:   project(tool.Resource{Type: tool.ContainerInstance, ContainerID: id}),
			Processes: true, ReadOnly: true, NoNetwork: true, Memory: true, Adds: adds,
		}
	})
}

// withoutAgent makes a backend that can put no agent into a container: its
// executable is not static.
func withoutAgent(c *container.Config) { c.Executable = "/bin/sh" }

func TestConformanceOfInstanceWithoutAgent(t *testing.T) {
	b, root := newBackend(t, withoutAgent), newRoot(t)
	id := containertest.Start(t, containertest.Python(t), root, nil)
	exectest.Run(t, func(*testing.T) exectest.Subject {
		return exectest.Subject{
			Backend: b, Environment: tool.Container, Root: root, Inside: "/workspace",
			Project:   project(tool.Resource{Type: tool.ContainerInstance, ContainerID: id}),
			Processes: true, CodeProcesses: true, NoNetwork: true,
			Adds: append([]string{"TOOLWORKER_RUN", "OLDPWD", "SHLVL", "_"}, adds...),
		}
	})
}

func TestConformanceOfDevcontainerInstance(t *testing.T) {
	needCLI(t)
	b, root := newBackend(t, nil), newRoot(t)
	id := containertest.Start(t, containertest.Python(t), root, nil)
	exectest.Run(t, func(*testing.T) exectest.Subject {
		return exectest.Subject{
			Backend: b, Environment: tool.Container, Root: root, Inside: "/workspace",
			Project:   project(tool.Resource{Type: tool.DevcontainerInstance, ContainerID: id}),
			Processes: true, ReadOnly: true, NoNetwork: true, Memory: true, Adds: adds,
		}
	})
}
