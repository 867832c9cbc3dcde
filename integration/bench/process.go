package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/toolworker/toolworker/internal/queue"
)

// withWorker runs f beside a worker in a process of its own, whose catalogue
// has the project p and entries.
func withWorker(c *queue.Client, entries string, args []string, f func(pid int) error) error {
	dir, err := os.MkdirTemp("", "toolworker-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	entries = fmt.Sprintf("kind: Project\nid: p\nhost_sandbox_path: %s\n---\n%s", filepath.Join(dir, "project"), entries)
	for path, text := range map[string]string{"catalog/p.yaml": entries, "project/README": "nothing\n"} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	args = append([]string{
		"run", "--nats-url", c.Conn().ConnectedUrl(), "--catalog", filepath.Join(dir, "catalog"),
		"--http-listen", "", "--log-level", "error", "--container-engine", "off",
	}, args...)
	worker := exec.Command("bin/worker", args...)
	worker.Stderr = os.Stderr
	if err := worker.Start(); err != nil {
		return fmt.Errorf("start worker (make build): %w", err)
	}
	defer func() {
		_ = worker.Process.Signal(syscall.SIGTERM)
		_ = worker.Wait()
	}()
	return f(worker.Process.Pid)
}
