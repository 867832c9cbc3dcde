package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/integration/fleet"
)

// need finds a program. On CI its absence is a failure, elsewhere a skip.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		return path
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: %v", program, err)
	}
	t.Skipf("%s is missing: %v", program, err)
	return ""
}

// A planner in JavaScript, with the official packages, sends structured and
// binary requests and reads the results with the CloudEvents SDK.
func TestPlannerInJavaScript(t *testing.T) {
	t.Parallel()
	node, npm := need(t, "node"), need(t, "npm")
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "planner.mjs"} {
		b, err := os.ReadFile(filepath.Join("planners/js", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command(npm, "ci", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel", "error")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("npm ci: %v\n%s", err, out)
	}
	catalog, _ := fleet.Catalog(t, "")
	server := fleet.Server(t)
	fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog).Ready()

	cmd := exec.Command(node, "planner.mjs", "p")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NATS_URL="+server.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("planner: %v\n%s", err, out)
	}
	forms := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		var answer struct {
			Form, Request, Type, CorrelationID, CausationID string
			Data                                            fleet.Result
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil {
			t.Fatalf("answer %q: %v", line, err)
		}
		forms[answer.Form] = true
		if answer.Type != "dev.toolworker.result.v1" || answer.CausationID != answer.Request || answer.CorrelationID != "kön%ig 1" {
			t.Errorf("%s: attributes %+v", answer.Form, answer)
		}
		if answer.Data.Status != "succeeded" || string(answer.Data.Value) != "42" || string(answer.Data.Output) != `"sum\n"` {
			t.Errorf("%s: result %+v", answer.Form, answer.Data)
		}
	}
	if !forms["structured"] || !forms["binary"] {
		t.Errorf("answers to %v, want both forms", forms)
	}
}

// The nats command line tool sends a request with plain headers.
func TestPlannerIsNATSCommand(t *testing.T) {
	t.Parallel()
	catalog, _ := fleet.Catalog(t, "")
	server := fleet.Server(t)
	fleet.StartWorker(t, "--nats-url", server.URL, "--catalog", catalog).Ready()

	cmd := exec.Command("go", "tool", "-modfile=deploy/tools.mod", "nats", "--server", server.URL, "pub",
		"-H", "Ce-Specversion:1.0", "-H", "Ce-Id:from-the-shell", "-H", "Ce-Source:/shell", "-H", "Ce-Type:dev.toolworker.request.v1",
		"-H", "Content-Type:application/json", "-H", "Nats-Msg-Id:p/from-the-shell",
		"tools.request.default.normal.p", `{"project":"p","inline":{"source":"custom","code":"print(6*7)"}}`)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("nats pub: %v\n%s", err, out)
	}
	r := fleet.NewPublisher(t, server.URL).Result(0, "result", "p", "from-the-shell", "--wait", "--wait-timeout", "60s")
	if string(r.Output) != `"42\n"` {
		t.Errorf("output %s, want 42", r.Output)
	}
}
