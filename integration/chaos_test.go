package integration

import (
	"encoding/json"
	"fmt"
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

// stage is a server and a project whose requests wait to be released.
type stage struct {
	t             *testing.T
	catalog, root string
	url           string
	planner       *fleet.Publisher
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	catalog, root := fleet.Catalog(t, "")
	url := fleet.Server(t).URL
	return &stage{t: t, catalog: catalog, root: root, url: url, planner: fleet.NewPublisher(t, url)}
}

// worker starts a worker and waits until it serves.
func (s *stage) worker(args ...string) *fleet.Worker {
	s.t.Helper()
	w := fleet.StartWorker(s.t, append([]string{"--nats-url", s.url, "--catalog", s.catalog}, args...)...)
	w.Ready()
	return w
}

// block sends requests that wait for release, and waits until the first runs.
func (s *stage) block(ids ...string) {
	s.t.Helper()
	for _, id := range ids {
		s.planner.MustRun("inline", "-p", "p", "--writes", "-c", blocked, "--timeout", "300", "--id", id, "--no-wait")
	}
	s.started(0)
}

// started waits for the start number n.
func (s *stage) started(n int) {
	s.t.Helper()
	waitForFile(s.t, filepath.Join(s.root, fmt.Sprintf("started-%d", n)))
}

func (s *stage) release() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.root, "go"), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// answered checks by whom a request was answered, at which attempt.
func (s *stage) answered(id, worker string, attempt int) {
	s.t.Helper()
	r := s.planner.Result(0, "result", "p", id, "--wait", "--wait-timeout", "60s")
	if r.Attempt != attempt || r.Worker != worker {
		s.t.Errorf("%s: attempt %d by %s, want %d by %s", id, r.Attempt, r.Worker, attempt, worker)
	}
}

// A worker that is killed loses nothing: another one runs its request, and
// the lost start is counted.
func TestWorkerKilled(t *testing.T) {
	s := newStage(t)
	first := s.worker("--name", "first")
	s.block("one")
	first.Kill()

	s.worker("--name", "second")
	s.started(1)
	s.release()
	s.answered("one", "second", 2)
}

// A drain lets running tools end and leaves the rest to others.
func TestDrainFinishesWhatRuns(t *testing.T) {
	s := newStage(t)
	first := s.worker("--name", "first", "--concurrency", "1")
	s.block("running", "queued")
	first.Signal(syscall.SIGTERM)
	first.Logged("draining", nil)
	s.release()
	first.WaitExit(0)
	s.answered("running", "first", 1)
	if _, err := os.Lstat(filepath.Join(s.root, "started-1")); err == nil {
		t.Error("queued: it was started during the drain")
	}
	s.worker("--name", "second")
	s.answered("queued", "second", 1)
}

// A second signal stops what runs at once; it is given back and does not
// count as a failed attempt.
func TestSecondSignalGivesBack(t *testing.T) {
	s := newStage(t)
	first := s.worker("--name", "first")
	s.block("one")
	first.Signal(syscall.SIGTERM)
	first.Logged("draining", nil)
	first.Signal(syscall.SIGTERM)
	first.WaitExit(0)

	s.release()
	s.worker("--name", "second")
	s.answered("one", "second", 1)
}
