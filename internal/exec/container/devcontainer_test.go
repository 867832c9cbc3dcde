package container_test

import (
	"os/exec"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/exec/exectest"
	"github.com/toolworker/toolworker/internal/tool"
)

func needCLI(t testing.TB) {
	t.Helper()
	for _, name := range []string{"devcontainer", "docker"} {
		if _, err := exec.LookPath(name); err != nil {
			containertest.Missing(t, "the command %s", name)
		}
	}
}

func TestConformanceOfDevcontainerInstance(t *testing.T) {
	needCLI(t)
	image := containertest.Python(t)
	b := newBackend(t, nil)
	exectest.Run(t, func(t *testing.T) exectest.Subject {
		root := newRoot(t)
		return exectest.Subject{
			Backend: b, Environment: tool.Container, Root: root, Inside: "/workspace",
			Project:   project(tool.Resource{Type: tool.DevcontainerInstance, ContainerID: containertest.Start(t, image, root, nil)}),
			Processes: true, ReadOnly: true, NoNetwork: true, Memory: true, Adds: adds,
		}
	})
}
