package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolworker/toolworker/integration/fleet"
)

// The server is killed under load and comes back: every request has exactly
// one result, and it is the right one.
func TestServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const n = 300
	catalog, _ := fleet.Catalog(t, "")
	server := fleet.Server(t)
	workers := []*fleet.Worker{
		fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "one"),
		fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "two"),
	}
	for _, w := range workers {
		w.Ready()
	}
	file := requests(t, n, "result = input_data['n'] ** 2")
	sent := make(chan fleet.Ran, 1)
	p := fleet.NewPublisher(t, server.URL)
	go func() { sent <- p.Run("send", file, "--wait", "--json") }()

	workers[0].Logged("settled", nil)
	server.Kill()
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	ran := <-sent
	if ran.Code != 0 {
		t.Fatalf("send: exit %d\n%s", ran.Code, ran.Stderr)
	}
	squares := map[int]int{}
	for line := range strings.Lines(ran.Stdout) {
		var r struct {
			Value int `json:"value"`
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("result %q: %v", line, err)
		}
		squares[r.Value]++
	}
	for i := range n {
		if squares[i*i] != 1 {
			t.Errorf("request %d: %d results, want 1", i, squares[i*i])
		}
	}
}

// blocked is inline code that says that it runs and then waits for a file.
const blocked = `
import os, time
n = 0
while os.path.exists('started-%d' % n): n += 1
open('started-%d' % n, 'w').close()
while not os.path.exists('go'): time.sleep(0.02)
print('went')
`

func release(t *testing.T, root string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
}

// block sends a request that waits for release.
func block(p *fleet.Publisher, id string) {
	p.MustRun("inline", "-p", "p", "--writes", "-c", blocked, "--timeout", "300", "--id", id, "--no-wait")
}

// A worker that is killed loses nothing: another one runs its request, and
// the lost start is counted.
func TestWorkerKilled(t *testing.T) {
	t.Parallel()
	catalog, root := fleet.Catalog(t, "")
	server := fleet.Server(t)
	first := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "first")
	first.Ready()
	p := fleet.NewPublisher(t, server.URL)
	block(p, "one")
	waitForFile(t, filepath.Join(root, "started-0"))
	first.Kill()

	second := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "second")
	second.Ready()
	waitForFile(t, filepath.Join(root, "started-1"))
	release(t, root)
	r := p.Result(0, "result", "p", "one", "--wait", "--wait-timeout", "60s")
	if r.Attempt != 2 || r.Worker != "second" {
		t.Errorf("attempt %d by %s, want 2 by second", r.Attempt, r.Worker)
	}
}

// A drain lets running tools end and leaves the rest to others.
func TestDrainFinishesWhatRuns(t *testing.T) {
	t.Parallel()
	catalog, root := fleet.Catalog(t, "")
	server := fleet.Server(t)
	worker := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--concurrency", "1")
	worker.Ready()
	p := fleet.NewPublisher(t, server.URL)
	for _, id := range []string{"running", "queued"} {
		block(p, id)
	}
	waitForFile(t, filepath.Join(root, "started-0"))
	worker.Signal(syscall.SIGTERM)
	worker.Logged("draining", nil)
	release(t, root)
	worker.WaitExit(0)
	if r := p.Result(0, "result", "p", "running"); r.Attempt != 1 {
		t.Errorf("running: attempt %d, want 1", r.Attempt)
	}
	if _, err := os.Lstat(filepath.Join(root, "started-1")); err == nil {
		t.Error("queued: it was started during the drain")
	}
	next := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog)
	next.Ready()
	if r := p.Result(0, "result", "p", "queued", "--wait", "--wait-timeout", "60s"); r.Attempt != 1 {
		t.Errorf("queued: attempt %d, want 1", r.Attempt)
	}
}

// A second signal stops what runs at once; it is given back and does not
// count as a failed attempt.
func TestSecondSignalGivesBack(t *testing.T) {
	t.Parallel()
	catalog, root := fleet.Catalog(t, "")
	server := fleet.Server(t)
	worker := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "first")
	worker.Ready()
	p := fleet.NewPublisher(t, server.URL)
	block(p, "one")
	waitForFile(t, filepath.Join(root, "started-0"))
	worker.Signal(syscall.SIGTERM)
	worker.Logged("draining", nil)
	worker.Signal(syscall.SIGTERM)
	worker.WaitExit(0)

	release(t, root)
	next := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog, "--name", "second")
	next.Ready()
	r := p.Result(0, "result", "p", "one", "--wait", "--wait-timeout", "60s")
	if r.Attempt != 1 || r.Worker != "second" {
		t.Errorf("attempt %d by %s, want 1 by second", r.Attempt, r.Worker)
	}
}
