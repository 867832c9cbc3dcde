package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/integration/fleet"
	"github.com/toolworker/toolworker/internal/tool"
)

// What ends a request from outside: cancellations, its own expiry, a lost
// worker, a machine that fails.

const endsCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
---
kind: Tool
name: once
command: [sh, -c, "touch started; exec sleep 600"]
capability: {writes: true}
idempotent: false
---
kind: Tool
name: flood
command: [head, -c, "2000000", /dev/zero]
idempotent: false
`

func TestContractCancelled(t *testing.T) {
	t.Parallel()
	c := newContract(t, endsCatalogue, "--concurrency", "1")
	root := c.mkdir(t, "p")
	c.request(t, "p", "running", "", call("p", "once", ""))
	waitForFile(t, filepath.Join(root, "started"))
	c.request(t, "p", "queued", "", inline("p", "print(1)", ""))
	c.publish(t, "tools.request.default.low.p", nil, structured("plain", "", inline("p", "print(1)", ""))) // without any header

	for _, test := range []struct {
		id, message string
		attempt     int
	}{
		{"queued", "cancelled before it was started", 0}, {"plain", "cancelled before it was started", 0},
		{"running", "the request was cancelled", 1},
	} {
		c.publish(t, "tools.cancel.p."+test.id, nil, "any body")
		doc := c.result(t, "p", test.id)
		if doc.Status != tool.StatusCancelled || doc.Error.Code != tool.Cancelled || doc.Error.Message != test.message || doc.Attempt != test.attempt {
			t.Errorf("%s: %s", test.id, doc.Raw)
		}
		if p := doc.Metadata.Process; test.attempt > 0 && (p == nil || p.Signal != "SIGKILL" || p.TimedOut) {
			t.Errorf("%s: process %+v", test.id, p)
		}
	}
}

func TestContractExpired(t *testing.T) {
	t.Parallel()
	c := newContract(t, endsCatalogue)
	c.mkdir(t, "p")
	past := time.Now().Add(-time.Second).UTC().Format(time.RFC3339Nano)
	c.request(t, "p", "late", `,"expirytime":"`+past+`"`, inline("p", "print(1)", ""))
	doc := c.result(t, "p", "late")
	if doc.Status != tool.StatusExpired || doc.Error.Code != tool.Expired || doc.Attempt != 0 || doc.Output != nil {
		t.Errorf("%s", doc.Raw)
	}
	if want := "expired at " + past; doc.Error.Message != want {
		t.Errorf("message %q, want %q", doc.Error.Message, want)
	}
	future := time.Now().Add(time.Hour).Format(time.RFC3339)
	c.request(t, "p", "in-time", `,"expirytime":"`+future+`"`, inline("p", "print(1)", ""))
	if doc := c.result(t, "p", "in-time"); !doc.Success {
		t.Errorf("%s", doc.Raw)
	}
}

// A tool that must not be started twice is not, when its worker is killed:
// its request is answered worker_lost and put aside.
func TestContractWorkerLost(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	c := &contract{base: base}
	c.catalog = c.mkdir(t, "catalog")
	c.catalogue(t, "entries.yaml", endsCatalogue)
	root := c.mkdir(t, "p")
	server := fleet.Server(t)
	first := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", c.catalog, "--name", "first")
	first.Ready()
	p := fleet.NewPublisher(t, server.URL)
	p.MustRun("run", "once", "-p", "p", "--id", "r-1", "--no-wait")
	waitForFile(t, filepath.Join(root, "started"))
	first.Kill()
	if err := os.Remove(filepath.Join(root, "started")); err != nil {
		t.Fatal(err)
	}

	fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", c.catalog, "--name", "second").Ready()
	r := p.Result(1, "result", "p", "r-1", "--wait", "--wait-timeout", "90s")
	if r.Status != "failed" || r.Error.Code != "worker_lost" || r.Attempt != 1 ||
		r.Error.Message != "a worker was lost while running it, and it is not idempotent" {
		t.Errorf("%s %+v, attempt %d", r.Status, r.Error, r.Attempt)
	}
	if _, err := os.Lstat(filepath.Join(root, "started")); err == nil {
		t.Error("it was started twice")
	}
	if dead := p.MustRun("dead", "list", "--json"); !strings.Contains(dead.Stdout, `"code":"worker_lost"`) {
		t.Errorf("dead letters: %q", dead.Stdout)
	}
}

// Where there is no room for a tool's output the infrastructure is to blame.
// A tool that must not be started twice is answered at once, and the message
// names a reference that the worker's log explains.
func TestContractInternal(t *testing.T) {
	t.Parallel()
	c := &contract{data: t.TempDir(), base: t.TempDir()}
	c.catalog = c.mkdir(t, "catalog")
	c.catalogue(t, "entries.yaml", endsCatalogue)
	c.mkdir(t, "p")
	spool := c.mkdir(t, "spool")
	c.start(t, []string{"TMPDIR=" + spool}, "--catalog", c.catalog)
	if err := os.Remove(spool); err != nil {
		t.Fatal(err)
	}
	doc := c.ask(t, "p", "r-1", call("p", "flood", ""))
	if doc.Status != tool.StatusFailed || doc.Error.Code != tool.Internal || doc.Attempt != 1 || doc.Output != nil {
		t.Fatalf("%s", doc.Raw)
	}
	_, reference, found := strings.Cut(doc.Error.Message, "(reference ")
	reference, _, closed := strings.Cut(reference, ")")
	if !found || !closed || reference == "" {
		t.Fatalf("message %q: want a reference", doc.Error.Message)
	}
	line := c.worker.Logged("request given up", map[string]any{"reference": reference, "id": "r-1"})
	if why, _ := line["fault"].(string); !strings.Contains(why, "spool output") {
		t.Errorf("log %v, want why", line)
	}
	if letters := c.deadLetters(t); len(letters) != 1 || letters[0].Code != tool.Internal || letters[0].ID != "r-1" {
		t.Errorf("dead letters %+v", letters)
	}
}
