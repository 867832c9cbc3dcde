package container_test

import (
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestContainerWhereNoAgentCanRunSaysSo(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	id := containertest.Start(t, containertest.Busybox(t), root, func(c *container.Config, h *container.HostConfig) {
		c.User = "12345:12345"
		h.ReadonlyRootfs = true
		h.Tmpfs = map[string]string{"/tmp": "rw,noexec", "/dev/shm": "rw,noexec"}
	})
	l := instance(t, newBackend(t, nil), id, root)
	r := l.run(t, l.sh("echo out; echo err >&2; exit 3"))
	if r.stdout != "out\n" || r.stderr != "err\n" || r.ExitCode != 3 {
		t.Errorf("%+v, %q, %q", r.Ending, r.stdout, r.stderr)
	}
	if r.Container.Mode != "exec" || r.Sandbox.Isolation != tool.IsolationNone || len(r.Sandbox.Missing) == 0 {
		t.Errorf("%+v, %+v", r.Container, r.Sandbox)
	}
}

func TestMadeContainerWithoutAgent(t *testing.T) {
	t.Parallel()
	l := made(t, newBackend(t, withoutAgent), "plain", containertest.Busybox(t))
	if r := l.run(t, l.sh("echo out")); r.stdout != "out\n" || r.Container.Mode != "exec" {
		t.Errorf("%+v, %q, %q", r.Ending, r.stdout, r.StartError)
	}
}

func TestContainerWithoutShell(t *testing.T) {
	t.Parallel()
	image := containertest.Bare(t)
	root := newRoot(t)
	hold := func(c *container.Config, _ *container.HostConfig) {
		c.Cmd = []string{"/" + agent.Name, agent.OrderHold, "1h"}
	}
	l := instance(t, newBackend(t, nil), containertest.Start(t, image, root, hold), root)
	if r := l.run(t, l.task("true")); !strings.Contains(r.StartError, "/bin/sh") {
		t.Errorf("%+v", r.Ending)
	}
	// A container that the worker makes has its agent from the start.
	made := made(t, newBackend(t, nil), "bare", image)
	if r := made.run(t, made.task("/"+agent.Name, agent.OrderProbe, "x")); r.StartError != "" || r.ExitCode != 0 {
		t.Errorf("%+v", r.Ending)
	}
}

func TestTooManyProcessesWithoutAgent(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	l := instance(t, newBackend(t, withoutAgent), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	task := l.sh("i=0; while [ $i -lt 100 ]; do sleep 600 & i=$((i+1)); done; wait")
	task.Limits.PIDs = 20
	if r := l.run(t, task); r.Hit != tool.TooManyProcesses || r.TimedOut || r.ExitCode != 137 {
		t.Errorf("%+v, %q", r.Ending, r.stderr)
	}
}
