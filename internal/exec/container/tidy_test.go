package container_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	backend "github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

// victimEnv makes this test binary a worker that is going to be killed.
const victimEnv = "TOOLWORKER_TEST_VICTIM"

type victimOrder struct{ Worker, Executable, Image, Root string }

// victim makes a container and waits for its end.
func victim(order string) {
	var o victimOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		panic(err)
	}
	b, err := backend.New(backend.Config{Engine: containertest.URL(), Worker: o.Worker, Executable: o.Executable})
	if err != nil {
		panic(err)
	}
	p := project(tool.Resource{Type: tool.ContainerInstance, Image: o.Image})
	l := &lab{Backend: b, project: p, root: o.Root}
	task := l.sh("echo ready; sleep 600")
	ready := started(task)
	go func() {
		<-ready
		fmt.Println("ready")
	}()
	_, err = l.Run(context.Background(), task)
	fmt.Println("ended early:", err)
}

func TestKilledWorkerLeavesNothingAfterTheNextSweep(t *testing.T) {
	image := containertest.Busybox(t)
	dead, other := containertest.Worker("killed"), containertest.Worker("other")
	order, err := json.Marshal(victimOrder{dead, containertest.Program(t), image, newRoot(t)})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimEnv+"="+string(order))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Fatalf("victim: %q, %v", line, err)
	}

	// While it lives, a fellow leaves its container alone.
	b := newBackend(t, func(c *backend.Config) { c.Worker, c.Alive = other, func(string) bool { return false } })
	l := made(t, b, "fellow", image)
	if r := l.run(t, l.task("true")); r.StartError != "" {
		t.Fatalf("%+v", r.Ending)
	}
	if len(managed(t, dead)) != 1 || volumes(t, dead) != 1 {
		t.Fatal("the container of a live worker was touched")
	}

	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitFor(t, "the tool of the killed worker ended", func() bool {
		for _, c := range managed(t, dead) {
			top, err := containertest.Need(t).ContainerTop(t.Context(), c.ID, client.ContainerTopOptions{})
			if err != nil || strings.Contains(fmt.Sprint(top.Processes), "sleep 600") {
				return false
			}
		}
		return true
	})
	newBackend(t, func(c *backend.Config) { c.Worker = containertest.Worker("next") })
	waitFor(t, "everything of the killed worker removed", func() bool { return len(managed(t, dead))+volumes(t, dead) == 0 })
	if len(managed(t, other)) != 1 {
		t.Error("the container of a live fellow was removed")
	}
}

func TestSweepTouchesNothingThatIsNotOurs(t *testing.T) {
	image, c := containertest.Busybox(t), containertest.Need(t)
	labels := func(extra map[string]string) func(*container.Config, *container.HostConfig) {
		return func(c *container.Config, _ *container.HostConfig) { c.Labels = extra }
	}
	past, future := fmt.Sprint(time.Now().Add(-time.Hour).Unix()), fmt.Sprint(time.Now().Add(time.Hour).Unix())
	us := func(worker, process, expires string) map[string]string {
		return map[string]string{
			"dev.toolworker.managed": "true", "dev.toolworker.worker": worker, "dev.toolworker.process": process, "dev.toolworker.expires": expires,
		}
	}
	keep := map[string]string{
		"no label":                   containertest.Start(t, image, "", nil),
		"a label of somebody else's": containertest.Start(t, image, "", labels(map[string]string{"dev.toolworker.worker": "dead"})),
		"of a live worker elsewhere": containertest.Start(t, image, "", labels(us("alive", "elsewhere/1/1", future))),
	}
	remove := map[string]string{
		"of a dead worker elsewhere": containertest.Start(t, image, "", labels(us("dead", "elsewhere/1/1", future))),
		"over its time":              containertest.Start(t, image, "", labels(us("alive", "elsewhere/1/1", past))),
	}
	newBackend(t, func(c *backend.Config) { c.Alive = func(worker string) bool { return worker == "alive" } })
	exists := func(id string) bool {
		_, err := c.ContainerInspect(t.Context(), id, client.ContainerInspectOptions{})
		return err == nil
	}
	for name, id := range remove {
		waitFor(t, "container "+name+" removed", func() bool { return !exists(id) })
	}
	for name, id := range keep {
		if !exists(id) {
			t.Errorf("container %s was removed", name)
		}
	}
}
