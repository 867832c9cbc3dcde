package container_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestZZCPU(t *testing.T) {
	image := containertest.Python(t)
	backend := newBackend(t, nil)
	root := newRoot(t)
	id := containertest.Start(t, image, root, nil)
	p := project(tool.Resource{Type: tool.ContainerInstance, ContainerID: id})
	task := func(argv []string, code string) *exec.Task {
		return &exec.Task{
			Request: &tool.Request{}, Project: p, Root: root, Argv: argv, Code: code, Name: "bench", Input: json.RawMessage("{}"),
			Resolution: tool.Resolution{Resolved: tool.Container}, Limits: tool.Limits{TimeoutSeconds: 30, MaxOutputBytes: 1 << 20},
		}
	}
	usage := func(kind string) float64 {
		b, _ := os.ReadFile("/sys/fs/cgroup/cpuacct/docker/" + id + "/cpuacct." + kind)
		n, _ := strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
		return n / 1e6
	}
	for _, mk := range []*exec.Task{task([]string{"/bin/true"}, ""), task(nil, "print(42)")} {
		for range 20 {
			backend.Run(t.Context(), mk)
		}
		var a, b syscall.Rusage
		syscall.Getrusage(0, &a)
		cu, cs := usage("usage_user"), usage("usage_sys")
		start := time.Now()
		const n = 500
		for range n {
			e, err := backend.Run(t.Context(), mk)
			if err != nil || e.ExitCode != 0 {
				t.Fatal(e, err)
			}
		}
		syscall.Getrusage(0, &b)
		fmt.Printf("argv=%v wall %.3f worker user %.3f sys %.3f container user %.3f sys %.3f ms\n", mk.Argv, float64(time.Since(start).Microseconds())/1000/n,
			float64(b.Utime.Nano()-a.Utime.Nano())/1e6/n, float64(b.Stime.Nano()-a.Stime.Nano())/1e6/n, (usage("usage_user")-cu)/n, (usage("usage_sys")-cs)/n)
	}
	if os.Getenv("HOLD") != "" {
		go func() {
			for {
				backend.Run(t.Context(), task([]string{"/bin/true"}, ""))
			}
		}()
		time.Sleep(20 * time.Second)
	}
}
