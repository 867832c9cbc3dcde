package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolworker/toolworker/integration/fleet"
)

// A request goes in, its result comes out, by processes that share nothing
// but the server.
func TestStraightPath(t *testing.T) {
	t.Parallel()
	catalog, root := fleet.Catalog(t, `kind: Tool
name: shout
command: [python3, -I, -c, "import json, sys; print(json.load(sys.stdin)['text'].upper())"]
`)
	if err := os.WriteFile(filepath.Join(root, "numbers.txt"), []byte("1\n2\n39\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	server := fleet.Server(t)
	worker := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog)
	worker.Ready()
	p := fleet.NewPublisher(t, server.URL)

	r := p.Result(0, "run", "shout", "-p", "p", "-i", "text=hello")
	if got := string(r.Output); got != `"HELLO\n"` {
		t.Errorf("command: output %s, want the upper-case text", got)
	}
	r = p.Result(0, "inline", "-p", "p", "-c", "result = sum(int(l) for l in open('numbers.txt')); print('added')")
	if string(r.Value) != "42" || string(r.Output) != `"added\n"` {
		t.Errorf("inline: value %s, output %s, want 42 and the text", r.Value, r.Output)
	}
	r = p.Result(1, "run", "nobody", "-p", "p")
	if r.Status != "rejected" || r.Error.Code != "unknown_tool" {
		t.Errorf("unknown tool: %s %v, want rejected, unknown_tool", r.Status, r.Error)
	}
	worker.Drain()
}

// A worker that starts before its server waits for it.
func TestWorkerWaitsForServer(t *testing.T) {
	t.Parallel()
	catalog, _ := fleet.Catalog(t, "")
	server := fleet.LaterServer(t)
	worker := fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog)
	worker.Logged("waiting for the server", nil)
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	worker.Ready()
	r := fleet.NewPublisher(t, server.URL).Result(0, "inline", "-p", "p", "-c", "print(1)")
	if string(r.Output) != `"1\n"` {
		t.Errorf("output %s, want 1", r.Output)
	}
}

// The embedded server asks for a token that publisher finds by itself.
func TestEmbeddedServerToken(t *testing.T) {
	t.Parallel()
	catalog, _ := fleet.Catalog(t, "")
	data := t.TempDir()
	worker := fleet.StartWorker(t, "--catalog", catalog, "--embedded-listen", "127.0.0.1:0", "--data-dir", data)
	line := worker.Logged("embedded JetStream server, clients need its token", nil)
	worker.Ready()
	url, _ := line["url"].(string)

	r := fleet.NewPublisher(t, url, "--data-dir", data).Result(0, "inline", "-p", "p", "-c", "print(1)")
	if string(r.Output) != `"1\n"` {
		t.Errorf("output %s, want 1", r.Output)
	}
	if ran := fleet.NewPublisher(t, url, "--data-dir", t.TempDir()).Run("queue"); ran.Code != 4 {
		t.Errorf("without the token: exit %d, want 4\n%s", ran.Code, ran.Stderr)
	}
	info, err := os.Stat(filepath.Join(data, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v %v, want mode 0600", info, err)
	}
}

// requests writes n request documents as JSON lines and returns the file.
func requests(t *testing.T, n int, code string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "requests.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range n {
		line, err := json.Marshal(map[string]any{
			"project": "p", "input": map[string]any{"n": i},
			"inline": map[string]any{"name": "numbered", "source": "custom", "code": code},
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "%s\n", line)
	}
	return path
}
