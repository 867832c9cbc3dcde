package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	agent.Main()
	testscript.Main(m, map[string]func(){"worker": main})
}

// patience bounds what a test waits for; it is long, because machines are slow.
const patience = 60 * time.Second

// running is a worker that runs inside the test.
type running struct {
	t         *testing.T
	dataDir   string
	interrupt context.CancelFunc // the first signal
	rush      context.CancelFunc // the second
	lines     chan record        // its log
	ended     chan error
}

// record is one line of the log.
type record map[string]any

// start runs `worker run` with an embedded server, unless args say otherwise.
func start(t *testing.T, dataDir string, args ...string) *running {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	hurry, rush := context.WithCancel(context.Background())
	w := &running{t: t, dataDir: dataDir, interrupt: interrupt, rush: rush, lines: make(chan record, 10_000), ended: make(chan error, 1)}
	out, in := io.Pipe()
	go func() {
		defer close(w.lines)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var r record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				r = record{"msg": lines.Text()}
			}
			w.lines <- r
		}
	}()
	args = append([]string{"run", "--embedded-listen=127.0.0.1:0", "--data-dir", dataDir, "--http-listen=127.0.0.1:0", "--log-format=json"}, args...)
	go func() {
		err := run(ctx, hurry, args, command.Streams{Out: io.Discard, Err: in})
		_ = in.Close()
		w.ended <- err
	}()
	t.Cleanup(func() {
		interrupt()
		rush()
		select {
		case <-w.ended:
		case <-time.After(patience):
			t.Error("the worker does not end")
		}
	})
	return w
}

// await returns the next record with that message.
func (w *running) await(msg string) record {
	w.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case r, ok := <-w.lines:
			if !ok {
				w.t.Fatalf("the worker ended before it said %q", msg)
			}
			if r["msg"] == msg {
				return r
			}
		case <-timeout:
			w.t.Fatalf("the worker does not say %q", msg)
		}
	}
}

// end waits for its end.
func (w *running) end() error {
	w.t.Helper()
	select {
	case err := <-w.ended:
		w.ended <- err // for the clean-up
		return err
	case <-time.After(patience):
		w.t.Fatal("the worker does not end")
		return nil
	}
}

// client connects to the embedded server of a worker, whose log was not read yet.
func (w *running) client() *queue.Client {
	w.t.Helper()
	server := w.await("embedded JetStream server, clients need its token")
	return connect(w.t, server["url"].(string), w.dataDir)
}

// connect connects to an embedded server.
func connect(t *testing.T, url, dataDir string) *queue.Client {
	t.Helper()
	token, err := queue.ReadToken(dataDir)
	if err != nil {
		t.Fatal(err)
	}
	client, err := queue.Connect(t.Context(), queue.Options{URL: url, Token: token, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// send publishes a request.
func send(t *testing.T, c *queue.Client, r *tool.Request) {
	t.Helper()
	r.Source, r.Time = "/test", time.Now()
	m, err := event.EncodeRequest(r, c.Names.Prefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), r.Project, r.ID, m); err != nil {
		t.Fatal(err)
	}
}

// result waits for the result of a request.
func result(t *testing.T, c *queue.Client, project, id string) *event.ResultDoc {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := c.WaitResult(ctx, project, id)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := event.DecodeResult(m)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// newCatalogue writes a catalogue with one project, and returns the
// directories of both.
func newCatalogue(t *testing.T) (catalogue, project string) {
	t.Helper()
	catalogue, project = t.TempDir(), t.TempDir()
	write(t, filepath.Join(project, "hello.txt"), "hello\n")
	write(t, filepath.Join(catalogue, "cat.py"), "import json, sys\nprint(open(json.load(sys.stdin)['path']).read(), end='')\n")
	write(t, filepath.Join(catalogue, "demo.yaml"), `kind: Project
id: demo
host_sandbox_path: `+project+`
---
kind: Tool
name: cat
command: [python3, -I, cat.py]
`)
	return catalogue, project
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func inline(id, code string) *tool.Request {
	return &tool.Request{Envelope: tool.Envelope{ID: id}, Project: "demo", Inline: &tool.Inline{Source: "custom", Code: code}}
}
