package container_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	backend "github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

// made is a lab in containers that the backend makes from an image.
func made(t testing.TB, b *backend.Backend, id, image string) *lab {
	p := project(tool.Resource{Type: tool.ContainerInstance, Image: image})
	p.ID = id
	return &lab{Backend: b, project: p, root: newRoot(t)}
}

// managed are the containers that carry a worker's name.
func managed(t testing.TB, worker string) []container.Summary {
	t.Helper()
	list, err := containertest.Need(t).ContainerList(context.WithoutCancel(t.Context()), client.ContainerListOptions{
		All: true, Filters: client.Filters{}.Add("label", "dev.toolworker.worker="+worker),
	})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func volumes(t testing.TB, worker string) int {
	t.Helper()
	list, err := containertest.Need(t).VolumeList(context.WithoutCancel(t.Context()), client.VolumeListOptions{
		Filters: client.Filters{}.Add("label", "dev.toolworker.worker="+worker),
	})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Items)
}

func TestMadeContainerIsConfined(t *testing.T) {
	t.Parallel()
	image, c := containertest.Busybox(t), containertest.Need(t)
	l := made(t, newBackend(t, nil), "confined", image)
	if err := os.Chown(l.root, 12345, 12346); err != nil {
		t.Skip("not root: cannot give a directory away")
	}
	l.project.Concurrency, l.project.Maximum = 2, tool.Limits{MemoryBytes: 100 << 20, CPUs: 0.5, PIDs: 50}
	r := l.run(t, l.sh("id -u; id -g; ls /sys/class/net | wc -l; echo x > /workspace/x || echo read-only; cat /proc/1/comm; grep -E 'NoNewPrivs|CapEff|Seccomp:' /proc/self/status"))
	want := "12345\n12346\n1\nread-only\ndocker-init\nCapEff:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
	if r.stdout != want {
		t.Errorf("got  %q\nwant %q\n%q", r.stdout, want, r.stderr)
	}
	if r.Container.Image != image || r.Container.WorkspaceFolder != "/workspace" || r.Container.Mode != "agent" || r.Container.ExecTimeMS <= 0 {
		t.Errorf("%+v", r.Container)
	}
	if r.Sandbox.Isolation != tool.IsolationReduced || !slices.Contains(r.Sandbox.Mechanisms, "landlock") || !slices.Contains(r.Sandbox.Mechanisms, "seccomp") {
		t.Errorf("%+v", r.Sandbox)
	}
	got, err := c.ContainerInspect(t.Context(), r.Container.ContainerID, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := got.Container.HostConfig
	for what, ok := range map[string]bool{
		"read-only root":     h.ReadonlyRootfs,
		"init":               h.Init != nil && *h.Init,
		"no network":         h.NetworkMode == "none",
		"capabilities":       slices.Equal(h.CapDrop, []string{"ALL"}) || slices.Equal(h.CapDrop, []string{"CAP_ALL"}),
		"no new privileges":  slices.Contains(h.SecurityOpt, "no-new-privileges"),
		"default seccomp":    !slices.ContainsFunc(h.SecurityOpt, func(s string) bool { return strings.HasPrefix(s, "seccomp") }),
		"memory":             h.Memory == 2*100<<20+256<<20 && h.MemorySwap == h.Memory,
		"cpus":               h.NanoCPUs == 1e9,
		"pids":               h.PidsLimit != nil && *h.PidsLimit == 2*(50+16)+64,
		"sized /tmp":         strings.Contains(h.Tmpfs["/tmp"], "size="),
		"label of project":   got.Container.Config.Labels["dev.toolworker.project"] == "confined",
		"vanishes by itself": h.AutoRemove,
	} {
		if !ok {
			t.Errorf("not as it should be: %s", what)
		}
	}
	task := l.sh("echo x > x && stat -c '%u:%g' x; echo y > /etc/y")
	task.Writes = true
	if r := l.run(t, task); r.stdout != "12345:12346\n" || content(t, l.root, "x") != "x\n" {
		t.Errorf("a tool that writes: %q, %q", r.stdout, r.stderr)
	}
}

func TestNetworkIsGrantedInAContainerOfItsOwn(t *testing.T) {
	t.Parallel()
	l := made(t, newBackend(t, nil), "network", containertest.Busybox(t))
	task := l.sh("ls /sys/class/net | wc -l")
	task.Network = true
	with := l.run(t, task)
	without := l.run(t, l.sh("ls /sys/class/net | wc -l"))
	if with.stdout != "2\n" || without.stdout != "1\n" || with.Container.ContainerID == without.Container.ContainerID {
		t.Errorf("%q with, %q without", with.stdout, without.stdout)
	}
}

func TestMadeContainerIsReusedAndReplaced(t *testing.T) {
	t.Parallel()
	c := containertest.Need(t)
	l := made(t, newBackend(t, nil), "reused", containertest.Busybox(t))
	first := l.run(t, l.task("true")).Container.ContainerID
	if again := l.run(t, l.task("true")).Container.ContainerID; again != first {
		t.Errorf("a second container %s", again)
	}
	if _, err := c.ContainerRemove(t.Context(), first, client.ContainerRemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a container in place of the removed one", func() bool {
		r := l.run(t, l.task("true"))
		return r.StartError == "" && r.Container.ContainerID != first
	})
}

func TestImageThatIsNotThere(t *testing.T) {
	t.Parallel()
	worker := containertest.Worker("no-image")
	l := made(t, newBackend(t, func(c *backend.Config) { c.Worker = worker }), "p", "localhost/toolworker-no-such-image:1")
	r := l.run(t, l.task("true"))
	if !strings.Contains(r.StartError, "toolworker-no-such-image") || r.Container.Image != "localhost/toolworker-no-such-image:1" {
		t.Errorf("%q, %+v", r.StartError, r.Container)
	}
	if n := len(managed(t, worker)) + volumes(t, worker); n > 0 {
		t.Errorf("%d containers and volumes left of a failed start", n)
	}
}

func TestIdleContainerIsRemoved(t *testing.T) {
	t.Parallel()
	worker := containertest.Worker("idle")
	b := newBackend(t, func(c *backend.Config) { c.Worker, c.Idle = worker, time.Second })
	l := made(t, b, "idle", containertest.Busybox(t))
	first := l.run(t, l.task("true")).Container.ContainerID
	waitFor(t, "the idle container removed", func() bool { return len(managed(t, worker)) == 0 })
	if r := l.run(t, l.task("true")); r.StartError != "" || r.Container.ContainerID == first {
		t.Errorf("afterwards: %+v", r.Ending)
	}
}

func TestContainerInUseIsNotIdle(t *testing.T) {
	t.Parallel()
	b := newBackend(t, func(c *backend.Config) { c.Idle = time.Second })
	l := made(t, b, "busy", containertest.Busybox(t))
	if r := l.run(t, l.sh("sleep 4; echo done")); r.stdout != "done\n" {
		t.Errorf("%+v, %q", r.Ending, r.stdout)
	}
}

func TestCloseRemovesEverything(t *testing.T) {
	t.Parallel()
	worker := containertest.Worker("close")
	b := newBackend(t, func(c *backend.Config) { c.Worker = worker })
	var wg sync.WaitGroup
	for i := range 3 {
		l := made(t, b, fmt.Sprintf("p-%d", i), containertest.Busybox(t))
		wg.Go(func() {
			if r := l.run(t, l.task("true")); r.StartError != "" {
				t.Errorf("%+v", r.Ending)
			}
		})
	}
	wg.Wait()
	if n := len(managed(t, worker)); n != 3 {
		t.Errorf("%d containers for 3 projects", n)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "everything removed", func() bool { return len(managed(t, worker))+volumes(t, worker) == 0 })
}

func TestSecondProjectDoesNotWaitForTheFirst(t *testing.T) {
	t.Parallel()
	b := newBackend(t, nil)
	slow, quick := made(t, b, "slow", containertest.Busybox(t)), made(t, b, "quick", containertest.Busybox(t))
	task := slow.sh("echo ready; sleep 600")
	ready := started(task)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _, _ = slow.Run(ctx, task) }()
	<-ready
	if r := quick.run(t, quick.sh("echo quick")); r.stdout != "quick\n" {
		t.Errorf("%+v", r.Ending)
	}
}
