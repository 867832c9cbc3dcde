package container_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/tool"
)

// patience bounds every wait of a test.
const patience = 60 * time.Second

// lab is a backend with a project.
type lab struct {
	*container.Backend
	project *tool.Project
	root    string
}

func (l *lab) task(argv ...string) *exec.Task {
	return &exec.Task{
		Request: &tool.Request{Envelope: tool.Envelope{ID: "r-1"}, Project: l.project.ID}, Project: l.project,
		Resolution: tool.Resolution{Resolved: tool.Container, DecidedBy: tool.DecidedByTool},
		Root:       l.root, Argv: argv, Input: json.RawMessage("{}"), Env: []string{"LANG=C.UTF-8", "TERM=dumb"},
		Limits: tool.Limits{TimeoutSeconds: 60, MaxOutputBytes: 1 << 20},
	}
}

func (l *lab) sh(script string) *exec.Task { return l.task("sh", "-c", script) }

// result is an Ending with its texts.
type result struct {
	*exec.Ending
	stdout, stderr string
}

func (l *lab) run(t testing.TB, task *exec.Task) *result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := l.Run(ctx, task)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return read(t, e)
}

func read(t testing.TB, e *exec.Ending) *result {
	t.Helper()
	text := func(c tool.Content) string {
		if c == nil {
			return ""
		}
		defer c.Close()
		r, err := c.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	r := &result{Ending: e, stdout: text(e.Stdout), stderr: text(e.Stderr)}
	if e.Container == nil {
		t.Error("no metadata of the container")
	}
	return r
}

// waitFor polls a condition of another process.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not in time", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// started gives the live receiver of a task, and waits for its first output.
func started(task *exec.Task) <-chan struct{} {
	seen := make(chan struct{})
	first := true
	task.Live = func(string, int64, []byte) {
		if first {
			first = false
			close(seen)
		}
	}
	return seen
}

// instance is a lab in a container that somebody else made.
func instance(t testing.TB, b *container.Backend, id, root string) *lab {
	return &lab{Backend: b, project: project(tool.Resource{Type: tool.ContainerInstance, ContainerID: id}), root: root}
}
