package container_test

import (
	"encoding/json"
	"testing"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

// BenchmarkRun measures executions at the backend's own interface.
func BenchmarkRun(b *testing.B) {
	image := containertest.Python(b)
	backend := newBackend(b, nil)
	root := newRoot(b)
	p := project(tool.Resource{Type: tool.ContainerInstance, ContainerID: containertest.Start(b, image, root, nil)})
	task := func(argv []string, code string) *exec.Task {
		return &exec.Task{
			Request: &tool.Request{}, Project: p, Root: root, Argv: argv, Code: code, Name: "bench", Input: json.RawMessage("{}"),
			Resolution: tool.Resolution{Resolved: tool.Container}, Limits: tool.Limits{TimeoutSeconds: 30, MaxOutputBytes: 1 << 20},
		}
	}
	run := func(b testing.TB, t *exec.Task) {
		e, err := backend.Run(b.Context(), t)
		if err != nil || e.ExitCode != 0 || e.StartError != "" {
			b.Errorf("%+v, %v", e, err)
			return
		}
		for _, c := range []tool.Content{e.Stdout, e.Stderr, e.Combined} {
			if c != nil {
				c.Close()
			}
		}
	}
	for name, make := range map[string]func() *exec.Task{
		"command": func() *exec.Task { return task([]string{"/bin/true"}, "") },
		"code":    func() *exec.Task { return task(nil, "print(6*7)") },
	} {
		run(b, make())
		b.Run(name+"/one", func(b *testing.B) {
			for b.Loop() {
				run(b, make())
			}
		})
		b.Run(name+"/eight", func(b *testing.B) {
			b.SetParallelism(4)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					run(b, make())
				}
			})
		})
	}
}
