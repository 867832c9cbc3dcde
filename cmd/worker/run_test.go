package main

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

func get(t *testing.T, url string) (code int, body string) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestRunServesUntilTheFirstSignal(t *testing.T) {
	catalogue, _ := newCatalogue(t)
	w := start(t, t.TempDir(), "--catalog", catalogue, "--name", "worker-7", "--pool", "default", "--pool", "other")
	url := w.await("serving http")["url"].(string)
	client := w.client()
	if ready := w.await("ready"); ready["worker"] != "worker-7" {
		t.Errorf("ready: %v", ready)
	}
	if code, body := get(t, url+"/readyz"); code != 200 {
		t.Errorf("/readyz: %d %s", code, body)
	}

	send(t, client, &tool.Request{Envelope: tool.Envelope{ID: "r-1"}, Project: "demo", Tool: "cat", Input: []byte(`{"path":"hello.txt"}`)})
	doc := result(t, client, "demo", "r-1")
	if !doc.Success || string(doc.Output) != `"hello\n"` || doc.Worker != "worker-7" || doc.Attempt != 1 {
		t.Errorf("result %s", doc.Raw)
	}
	second := inline("r-2", "print(6 * 7)\nresult = {'a': 1}")
	second.Pool, second.Priority = "other", tool.High
	send(t, client, second)
	if doc := result(t, client, "demo", "r-2"); string(doc.Output) != `"42\n"` || string(doc.Value) != `{"a":1}` {
		t.Errorf("result %s", doc.Raw)
	}
	for _, id := range []string{"r-1", "r-2"} {
		if line := w.await("settled"); line["id"] != id || line["status"] != "succeeded" {
			t.Errorf("one line for each: %v", line)
		}
	}

	_, metrics := get(t, url+"/metrics")
	for _, want := range []string{`toolworker_slots `, `gen_ai_tool_name="cat"`, `toolworker_pool="other"`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	w.interrupt()
	if err := w.end(); err != nil {
		t.Errorf("exit code %d, %v", command.ExitCode(err), err)
	}
}

// untilDrained is code that runs until it is stopped, the first time.
const untilDrained = `
import os, time
if os.path.exists("started"):
    print("again")
else:
    open("started", "w").close()
    time.sleep(600)
`

func TestSecondSignalGivesBackAtOnce(t *testing.T) {
	catalogue, project := newCatalogue(t)
	dataDir := t.TempDir()
	// The server outlives the workers: only then "at once" can be seen.
	server, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dataDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	client := connect(t, server.URL(), dataDir)
	w := start(t, dataDir, "--catalog", catalogue, "--drain-timeout=10m", "--nats-url", server.URL())
	w.await("ready")
	r := inline("r-1", untilDrained)
	r.Inline.Capability.Writes = true
	r.Limits.TimeoutSeconds = 500
	send(t, client, r)
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(project, "started")); return err == nil })
	w.interrupt()
	w.await("draining")
	w.rush()
	if err := w.end(); err != nil {
		t.Fatal(err)
	}

	start(t, dataDir, "--catalog", catalogue, "--nats-url", server.URL())
	doc := result(t, client, "demo", "r-1")
	if string(doc.Output) != `"again\n"` || doc.Attempt != 1 || doc.Metadata.QueuedMS > 20_000 {
		t.Errorf("a drain counts as an attempt, or it was lost: %s", doc.Raw)
	}
}

func TestDrainLetsToolsEnd(t *testing.T) {
	catalogue, project := newCatalogue(t)
	dataDir := t.TempDir()
	w := start(t, dataDir, "--catalog", catalogue)
	client := w.client()
	w.await("ready")
	r := inline("r-1", `
import os, time
open("started", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print("ended")
`)
	r.Inline.Capability.Writes = true
	send(t, client, r)
	eventually(t, func() bool { _, err := os.Stat(filepath.Join(project, "started")); return err == nil })
	w.interrupt()
	w.await("draining")
	write(t, filepath.Join(project, "go"), "")
	// The server goes with the worker: its log is the witness.
	if line := w.await("settled"); line["status"] != "succeeded" || line["disposition"] != "answered" {
		t.Errorf("settled: %v", line)
	}
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestRunWaitsForItsServer(t *testing.T) {
	dataDir := t.TempDir()
	first, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dataDir})
	if err != nil {
		t.Fatal(err)
	}
	address := first.URL()
	first.Shutdown()

	w := start(t, dataDir, "--nats-url", address)
	url := w.await("serving http")["url"].(string)
	w.await("waiting for the server")
	if code, body := get(t, url+"/readyz"); code != 503 || !strings.Contains(body, "waiting for NATS") {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get(t, url+"/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	server, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: strings.TrimPrefix(address, "nats://"), DataDir: dataDir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	w.await("ready")
	eventually(t, func() bool { code, _ := get(t, url+"/readyz"); return code == 200 })
	w.interrupt()
	if err := w.end(); err != nil {
		t.Error(err)
	}
}

func TestSignalWhileStarting(t *testing.T) {
	w := start(t, t.TempDir(), "--nats-url", "nats://127.0.0.1:1")
	w.await("waiting for the server")
	w.interrupt()
	if err := w.end(); err != nil {
		t.Errorf("exit code %d, %v", command.ExitCode(err), err)
	}
}

func TestStartIsRefused(t *testing.T) {
	catalogue, _ := newCatalogue(t)
	server, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Shutdown)
	address := strings.TrimPrefix(server.URL(), "nats://")
	for name, tc := range map[string]struct {
		args []string
		code int
		want string
	}{
		"http port in use":     {[]string{"--http-listen", address}, command.Failed, "--http-listen"},
		"embedded port in use": {[]string{"--embedded-listen", address}, command.Failed, "in use"},
		"refused":              {[]string{"--nats-url", server.URL()}, command.Unreachable, "refused"},
		"exposing everything":  {[]string{"--expose", "/"}, command.Usage, "whole machine"},
		"exporter":             {nil, command.Usage, "carrier-pigeon"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "exporter" {
				t.Setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
			}
			w := start(t, t.TempDir(), append([]string{"--catalog", catalogue}, tc.args...)...)
			err := w.end()
			if command.ExitCode(err) != tc.code || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("exit code %d, %v", command.ExitCode(err), err)
			}
		})
	}
}

func TestNoIsolationOnlyByName(t *testing.T) {
	catalogue, _ := newCatalogue(t)
	w := start(t, t.TempDir(), "--catalog", catalogue, "--require-isolation=none")
	client := w.client()
	if ready := w.await("ready"); ready["isolation"] != "none" {
		t.Errorf("ready: %v", ready)
	}
	send(t, client, inline("r-1", "print(1)"))
	if doc := result(t, client, "demo", "r-1"); doc.Metadata.Sandbox.Isolation != tool.IsolationNone {
		t.Errorf("result %s", doc.Raw)
	}
}

func TestErrorsOfTheMachineHaveAHint(t *testing.T) {
	_, err := machine{Require: "absurd"}.equip(nil)
	var told *command.Error
	if !errors.As(err, &told) || !strings.Contains(told.Hint, "worker doctor") {
		t.Errorf("error %v", err)
	}
}
