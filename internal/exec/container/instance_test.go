package container_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestContainerThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	b := newBackend(t, nil)
	for name, test := range map[string]struct {
		change func(t *testing.T, id string)
		says   []string
	}{
		"stopped": {func(t *testing.T, id string) {
			if _, err := c.ContainerKill(t.Context(), id, client.ContainerKillOptions{Signal: "KILL"}); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "container stopped", func() bool {
				r, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
				return err == nil && !r.Container.State.Running
			})
		}, []string{"stopped", "start it"}},
		"paused": {func(t *testing.T, id string) {
			if _, err := c.ContainerPause(t.Context(), id, client.ContainerPauseOptions{}); err != nil {
				t.Fatal(err)
			}
		}, []string{"paused", "unpause it"}},
		"removed": {func(t *testing.T, id string) {
			if _, err := c.ContainerRemove(t.Context(), id, client.ContainerRemoveOptions{Force: true}); err != nil {
				t.Fatal(err)
			}
		}, []string{"does not exist", "create it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRoot(t)
			id := containertest.Start(t, image, root, nil)
			l := instance(t, b, id, root)
			test.change(t, id)
			r := l.run(t, l.task("true"))
			for _, word := range test.says {
				if !strings.Contains(r.StartError, word) {
					t.Errorf("%q: %q is missing", r.StartError, word)
				}
			}
			if r.ExitCode != -1 || r.Container.ExitCode != -1 || r.Container.ContainerID != id {
				t.Errorf("exit code %d, %+v", r.ExitCode, r.Container)
			}
		})
	}
}

func TestCase35ContainerChangesDuringARun(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	b := newBackend(t, nil)
	for name, test := range map[string]struct {
		change func(ctx context.Context, id string) error
		says   string
	}{
		"stopped": {func(ctx context.Context, id string) error {
			_, err := c.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: "KILL"})
			return err
		}, "stopped"},
		"removed": {func(ctx context.Context, id string) error {
			_, err := c.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true})
			return err
		}, "removed"},
		"paused": {func(ctx context.Context, id string) error {
			_, err := c.ContainerPause(ctx, id, client.ContainerPauseOptions{})
			return err
		}, "paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := newRoot(t)
			id := containertest.Start(t, image, root, nil)
			l := instance(t, b, id, root)
			task := l.sh("echo ready; sleep 600")
			ready := started(task)
			changed := make(chan error, 1)
			go func() {
				<-ready
				changed <- test.change(context.WithoutCancel(t.Context()), id)
			}()
			r := l.run(t, task)
			if err := <-changed; err != nil {
				t.Fatal(err)
			}
			// A container being removed may be seen as stopped or on its way.
			if !strings.Contains(r.StartError, test.says) && !(test.says == "removed" && r.StartError != "") {
				t.Errorf("%q: expected that it was %s", r.StartError, test.says)
			}
		})
	}
}

func TestPausedContainerIsATimeoutWhenTheTimeIsUp(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	root := newRoot(t)
	id := containertest.Start(t, image, root, nil)
	l := instance(t, newBackend(t, nil), id, root)
	task := l.sh("echo ready; sleep 600")
	task.Limits.TimeoutSeconds = 2
	ready := started(task)
	go func() {
		<-ready
		_, _ = c.ContainerPause(context.WithoutCancel(t.Context()), id, client.ContainerPauseOptions{})
	}()
	r := l.run(t, task)
	if !r.TimedOut || !r.Container.TimedOut || r.StartError != "" {
		t.Errorf("%+v, %+v", r.Ending, r.Container)
	}
}

func TestLostAgentIsAFaultAndANewOneStarts(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	root := newRoot(t)
	id := containertest.Start(t, image, root, nil)
	l := instance(t, newBackend(t, nil), id, root)
	task := l.sh("echo ready; sleep 600")
	ready := started(task)
	go func() {
		<-ready
		kill := client.ExecCreateOptions{Cmd: []string{"sh", "-c", "kill -9 $(pidof toolworker-agent)"}}
		if x, err := c.ExecCreate(context.WithoutCancel(t.Context()), id, kill); err == nil {
			_, _ = c.ExecStart(context.WithoutCancel(t.Context()), x.ID, client.ExecStartOptions{})
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := l.Run(ctx, task)
	var f *tool.Fault
	if !errors.As(err, &f) {
		t.Fatalf("run: %v, want a fault", err)
	}
	if r := l.run(t, l.sh("echo again")); r.stdout != "again\n" || r.Container.Mode != "agent" {
		t.Errorf("afterwards: %+v, %q", r.Ending, r.stdout)
	}
	waitFor(t, "nothing of the lost agent left", func() bool {
		top, err := c.ContainerTop(t.Context(), id, client.ContainerTopOptions{})
		if err != nil {
			return false
		}
		agents := 0
		for _, p := range top.Processes {
			line := strings.Join(p, " ")
			if strings.Contains(line, "sleep 600") {
				return false
			}
			if strings.Contains(line, "toolworker-agent") {
				agents++
			}
		}
		return agents == 1
	})
}

func TestAgentLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	root := newRoot(t)
	id := containertest.Start(t, image, root, nil)
	b := newBackend(t, nil)
	l := instance(t, b, id, root)
	if r := l.run(t, l.sh("sleep 1000 & echo x > $TMPDIR/x")); r.ExitCode != 0 {
		t.Fatalf("%+v %q", r.Ending, r.stderr)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "only the container's own processes left", func() bool {
		top, err := c.ContainerTop(t.Context(), id, client.ContainerTopOptions{})
		return err == nil && len(top.Processes) == 2 // init and sleep
	})
	diff, err := c.ContainerDiff(t.Context(), id, client.ContainerDiffOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range diff.Changes {
		if strings.Contains(change.Path, "toolworker") {
			t.Errorf("left behind: %s", change.Path)
		}
	}
}

func TestCase33MissingToolIsAStartError(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	r := l.run(t, l.task("no-such-tool", "x"))
	if r.StartError != "no-such-tool: command not found" || r.stdout != "" || r.Container.ExitCode != -1 {
		t.Errorf("%+v, %q", r.Ending, r.stdout)
	}
	code := l.task()
	code.Argv, code.Code, code.Name = nil, "print(1)", "inline"
	if r := l.run(t, code); !strings.Contains(r.StartError, "python3") {
		t.Errorf("code without an interpreter: %q", r.StartError)
	}
}

func TestCase38WorkspaceThatIsNone(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	for _, dir := range []string{"/proc/self/fd/3", "/proc", "/sys/fs", "/dev/shm", "/", "relative", "/a/../b", "/a\x00b"} {
		l.project.Resources[0].WorkspaceFolder = dir
		_, err := l.Run(t.Context(), l.task("true"))
		var refused *tool.Error
		if !errors.As(err, &refused) || refused.Code != tool.EnvironmentUnavailable {
			t.Errorf("%q: %v", dir, err)
		}
	}
	l.project.Resources[0].WorkspaceFolder = "/nowhere"
	if r := l.run(t, l.task("true")); !strings.Contains(r.StartError, "/nowhere") {
		t.Errorf("a workspace that is not there: %q", r.StartError)
	}
}

func TestEngineThatIsNotThere(t *testing.T) {
	t.Parallel()
	b, err := container.New(container.Config{
		Engine: "unix://" + t.TempDir() + "/none.sock", Worker: "w", Executable: containertest.Program(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := instance(t, b, "x", newRoot(t))
	_, err = l.Run(t.Context(), l.task("true"))
	var f *tool.Fault
	if !errors.As(err, &f) || !strings.Contains(err.Error(), "none.sock") {
		t.Errorf("%v, want a fault that names the engine", err)
	}
	if r := b.Report(t.Context()); r.Problem == nil {
		t.Error("the report finds nothing wrong")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := container.New(container.Config{Engine: "off", Worker: "w"}); !errors.Is(err, container.ErrOff) {
		t.Errorf("off: %v", err)
	}
	for name, c := range map[string]container.Config{
		"no worker": {Engine: "unix:///x"},
		"bad URL":   {Engine: "nonsense", Worker: "w"},
		"slots":     {Engine: "unix:///x", Worker: "w", Slots: -1},
		"idle":      {Engine: "unix:///x", Worker: "w", Idle: -time.Second},
	} {
		if b, err := container.New(c); err == nil {
			t.Errorf("%s: accepted", name)
			_ = b.Close()
		}
	}
}

func TestEnvironmentIsTheContainersAndTheTasks(t *testing.T) {
	containertest.Need(t)
	for _, name := range []string{"LD_PRELOAD", "BASH_ENV", "PYTHONPATH", "TOOLWORKER_SECRET"} {
		t.Setenv(name, "of-the-worker")
	}
	root := newRoot(t)
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	task := l.task("env")
	task.Env = []string{"PATH=/worker/bin", "LANG=C.UTF-8", "GREETING=hello"}
	r := l.run(t, task)
	if strings.Contains(r.stdout, "of-the-worker") || strings.Contains(r.stdout, "/worker/bin") {
		t.Errorf("something of the worker's: %s", r.stdout)
	}
	for _, line := range []string{"GREETING=hello\n", "LANG=C.UTF-8\n", "PATH=/usr/local/bin:/usr/bin:/bin\n"} {
		if !strings.Contains(r.stdout, line) {
			t.Errorf("%q is missing: %s", line, r.stdout)
		}
	}
	l.project.Env = map[string]string{"PATH": "/worker/bin"}
	task.Argv = []string{"/bin/env"}
	if r := l.run(t, task); !strings.Contains(r.stdout, "PATH=/worker/bin\n") {
		t.Errorf("the project's own PATH: %s", r.stdout)
	}
}

func TestProtectedPathsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	write(t, root, ".git/config", "old")
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	task := l.sh("echo new > .git/config; mkdir .devcontainer; echo x > .devcontainer/devcontainer.json; echo free > free")
	task.Writes, task.Protect = true, []string{".git/config", ".devcontainer"}
	if r := l.run(t, task); r.ExitCode != 0 {
		t.Fatalf("%+v %q", r.Ending, r.stderr)
	}
	if got := content(t, root, ".git/config"); got != "old" {
		t.Errorf("a protected file holds %q", got)
	}
	if got := content(t, root, ".devcontainer/devcontainer.json"); got != "" {
		t.Errorf("a protected directory was made, with %q", got)
	}
	if got := content(t, root, "free"); got != "free\n" {
		t.Errorf("an unprotected file holds %q", got)
	}
}

func TestFilesBesideTheCatalogueEntryAreBrought(t *testing.T) {
	t.Parallel()
	root, beside := newRoot(t), newRoot(t)
	write(t, beside, "tool.sh", ". $(dirname $0)/lib/part.sh; echo $1")
	write(t, beside, "lib/part.sh", "echo part")
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	task := func() *exec.Task {
		task := l.task("sh", "tool.sh", "tool")
		task.Definition = &tool.Definition{Name: "x", Command: task.Argv, Dir: beside}
		return task
	}
	if r := l.run(t, task()); r.stdout != "part\ntool\n" {
		t.Errorf("%+v, %q, %q", r.Ending, r.stdout, r.stderr)
	}
	write(t, beside, "lib/part.sh", "echo changed part")
	waitFor(t, "the changed file", func() bool { return l.run(t, task()).stdout == "changed part\ntool\n" })
}
