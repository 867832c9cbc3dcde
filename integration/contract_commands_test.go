package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/integration/fleet"
)

// What scripts rely on of the programs: exit codes, JSON, the environment.
func TestContractExitCodes(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	p := c.publisher
	for _, test := range []struct {
		code   int
		stderr string // a regular expression
		args   []string
	}{
		{0, `^value: 1\nsucceeded in .* on host \(isolation .*\), worker `, []string{"inline", "-p", "p", "-c", "result = 1", "--id", "taken"}},
		{1, `publisher: exit_status: Execution failed \(exit code 3\): no such thing\n$`, []string{"run", "fails", "-p", "p"}},
		{1, `publisher: unknown_tool: `, []string{"run", "nobody", "-p", "p"}},
		{2, `^publisher: .*already taken`, []string{"run", "fails", "-p", "p", "--id", "taken"}},
		{2, `^publisher: .*"a\.b": expected`, []string{"run", "fails", "-p", "a.b"}},
		{2, `^publisher: unknown flag --nope`, []string{"run", "fails", "-p", "p", "--nope"}},
		{3, `^publisher: no result of slow within 200ms`, []string{"run", "sleep", "-p", "p", "--id", "slow", "--timeout", "1", "--wait-timeout", "200ms"}},
		{3, `^publisher: never has no result yet`, []string{"result", "p", "never"}},
		{4, `^publisher: .*no such pool`, []string{"run", "fails", "-p", "p", "--pool", "nowhere"}},
		{1, `not found`, []string{"dead", "show", "99"}},
		{1, `not in the catalogue`, []string{"catalog", "get", "echo"}}, // the worker's is a directory
	} {
		ran := p.Run(test.args[0], test.args[1:]...)
		if ran.Code != test.code || !regexp.MustCompile(test.stderr).MatchString(ran.Stderr) || strings.Count(ran.Stderr, "publisher: ") > 1 {
			t.Errorf("publisher %v: exit %d, stderr %q, want exit %d, %s", test.args, ran.Code, ran.Stderr, test.code, test.stderr)
		}
		if test.code > 1 && ran.Stdout != "" {
			t.Errorf("publisher %v: stdout %q", test.args, ran.Stdout)
		}
	}
	for why, nobody := range map[string]*fleet.Publisher{
		"unreachable": fleet.NewPublisher(t, "nats://127.0.0.1:1"),
		"refused":     fleet.NewPublisher(t, c.url, "--data-dir", t.TempDir()),
	} {
		for _, command := range []string{"queue", "topology", "catalog", "dead"} {
			if ran := nobody.Run(command); ran.Code != 4 || strings.Count(ran.Stderr, "\n") != 1 {
				t.Errorf("%s: %s: exit %d, stderr %q, want 4 and a line", why, command, ran.Code, ran.Stderr)
			}
		}
	}
}

// With --json every command prints one document, or one a line.
func TestContractJSONEverywhere(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	c.publish(t, "tools.request.default.normal.p", nil, "noise")
	eventually(t, "there is a dead letter", func() bool { return len(c.deadLetters(t)) == 1 })
	dir := c.mkdir(t, "apply")
	catalog := &contract{catalog: dir, base: c.base}
	catalog.catalogue(t, "all.yaml", versionedCatalogue)
	c.publisher.Stdin = `{"project":"p","inline":{"code":"print(1)"}}` + "\n" + `{"project":"p","inline":{"code":"print(2)"}}` + "\n"
	for _, test := range []struct {
		code  int
		lines int // 0: one document on any number of lines; -1: none or more
		args  []string
	}{
		{0, 1, []string{"inline", "-p", "p", "-c", "print(1)", "--id", "one"}},
		{1, 1, []string{"run", "fails", "-p", "p"}},
		{0, 1, []string{"run", "fails", "-p", "p", "--no-wait"}},
		{0, 1, []string{"result", "p", "one"}},
		{0, 2, []string{"send", "-"}},
		{0, 2, []string{"send", "-", "--wait"}},
		{0, 1, []string{"cancel", "p", "one"}},
		{0, 1, []string{"dead", "list"}},
		{0, 0, []string{"dead", "show", "1"}},
		{0, 1, []string{"dead", "replay", "--raw", "1"}},
		{0, 1, []string{"dead", "drop", "1"}},
		{0, 0, []string{"queue"}},
		{0, 0, []string{"topology", "show"}},
		{0, 0, []string{"topology", "apply"}},
		{0, 1, []string{"topology", "add-pool", "gpu"}},
		{0, 0, []string{"catalog", "apply", "-f", dir}},
		{0, 1, []string{"pause", "--tool", "say"}},
		{0, 3, []string{"catalog", "list"}},
		{0, 1, []string{"resume", "--tool", "say"}},
		{0, 0, []string{"catalog", "get", "say"}},
		{0, 1, []string{"catalog", "delete", "say"}},
		{0, 1, []string{"purge", "-p", "p"}},
		{0, 0, []string{"bench", "-p", "p", "-n", "3"}},
		{0, 1, []string{"version"}},
	} {
		ran := c.publisher.Run(test.args[0], append(test.args[1:], "--json")...)
		if ran.Code != test.code || ran.Stderr != "" {
			t.Errorf("publisher %v: exit %d, stderr %q", test.args, ran.Code, ran.Stderr)
		}
		documents := strings.SplitAfter(strings.TrimSuffix(ran.Stdout, "\n"), "\n")
		if test.lines == 0 {
			documents = []string{ran.Stdout}
		}
		if want := max(1, test.lines); len(documents) != want {
			t.Errorf("publisher %v: %d documents, want %d: %q", test.args, len(documents), want, ran.Stdout)
		}
		for _, d := range documents {
			if !json.Valid([]byte(d)) {
				t.Errorf("publisher %v: no JSON: %q", test.args, d)
			}
		}
	}
}

// Flags come from the environment as well, for both programs.
func TestContractEnvironment(t *testing.T) {
	t.Parallel()
	c := &contract{data: t.TempDir(), base: t.TempDir()}
	c.catalog = c.mkdir(t, "catalog")
	c.catalogue(t, "entries.yaml", codesCatalogue)
	c.mkdir(t, "p")
	worker := fleet.StartWorkerIn(t, []string{
		"TOOLWORKER_EMBEDDED_LISTEN=127.0.0.1:0", "TOOLWORKER_DATA_DIR=" + c.data, "TOOLWORKER_CATALOG=" + c.catalog,
		"TOOLWORKER_POOL=blue,gpu", "TOOLWORKER_NAME=by-environment", "TOOLWORKER_CONCURRENCY=3",
		"TOOLWORKER_SUBJECT_PREFIX=acme.tools", "TOOLWORKER_STREAM_PREFIX=ACME", "TOOLWORKER_CONTAINER_ENGINE=off",
	})
	url, _ := worker.Logged("embedded JetStream server, clients need its token", nil)["url"].(string)
	ready := worker.Ready()
	if ready["worker"] != "by-environment" || ready["slots"] != 3.0 || fmt.Sprint(ready["pools"]) != "[blue gpu]" {
		t.Errorf("ready: %v", ready)
	}
	p := fleet.NewPublisher(t, url)
	p.Env = []string{
		"TOOLWORKER_DATA_DIR=" + c.data, "TOOLWORKER_SUBJECT_PREFIX=acme.tools", "TOOLWORKER_STREAM_PREFIX=ACME",
		"TOOLWORKER_PROJECT=p", "TOOLWORKER_POOL=blue", "TOOLWORKER_PRIORITY=high", "TOOLWORKER_JSON=true", "TOOLWORKER_ID=r-1",
	}
	ran := p.MustRun("inline", "-c", "print(input_data)")
	var r fleet.Result
	if err := json.Unmarshal([]byte(ran.Stdout), &r); err != nil || r.RequestID != "r-1" || r.Worker != "by-environment" {
		t.Errorf("%q, %v", ran.Stdout, err)
	}
	// A bad value is told with the variable's name.
	p.Env = append(p.Env, "TOOLWORKER_PRIORITY=urgent")
	if ran := p.Run("inline", "-c", "1"); ran.Code != 2 || strings.Count(ran.Stderr, "\n") != 1 || !strings.Contains(ran.Stderr, "urgent") {
		t.Errorf("exit %d, stderr %q", ran.Code, ran.Stderr)
	}
}

// What the fleet needs on the server is shown, created and mended.
func TestContractTopology(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	p := c.publisher
	p.MustRun("topology", "show")
	if err := c.client.JetStream().DeleteStream(t.Context(), "TOOL_EVENTS"); err != nil {
		t.Fatal(err)
	}
	if ran := p.Run("topology", "show"); ran.Code != 1 || !regexp.MustCompile(`(?m)^stream +TOOL_EVENTS +missing$`).MatchString(ran.Stdout) {
		t.Errorf("show: exit %d\n%s", ran.Code, ran.Stdout)
	}
	p.MustRun("topology", "apply")
	p.MustRun("topology", "show")

	if ran := p.Run("run", "fails", "-p", "p", "--pool", "gpu"); ran.Code != 4 {
		t.Errorf("another pool: exit %d, want 4", ran.Code)
	}
	p.MustRun("topology", "add-pool", "gpu")
	worker := fleet.StartWorker(t, "--nats-url", c.url, "--data-dir", c.data, "--catalog", c.catalog, "--pool", "gpu", "--name", "gpu-1", "--container-engine", "off")
	worker.Ready()
	if r := p.Result(0, "inline", "-p", "p", "-c", "print(1)", "--pool", "gpu"); r.Worker != "gpu-1" {
		t.Errorf("served by %s, want gpu-1", r.Worker)
	}
	// A worker without another pool's subjects takes none of them away.
	if ran := p.MustRun("queue"); !strings.Contains(ran.Stdout, "gpu-1") {
		t.Errorf("queue:\n%s", ran.Stdout)
	}
}

// watch shows results as they are stored.
func TestContractWatch(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	cmd := c.publisher.Command("watch", "-p", "p", "--count", "2")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "TIME ") {
		t.Fatalf("watch began with %q", lines.Text())
	}
	// By now it listens.
	c.ask(t, "p", "good", inline("p", "print('seen')", ""))
	c.ask(t, "p", "bad", call("p", "nobody", ""))
	c.ask(t, "closed", "elsewhere", call("closed", "echo", ""))
	var rows []string
	for lines.Scan() {
		rows = append(rows, lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("watch: %v", err)
	}
	if len(rows) != 2 || !regexp.MustCompile(`^\d\d:\d\d:\d\d +p +good +inline +succeeded .*"seen`).MatchString(rows[0]) ||
		!regexp.MustCompile(`p +bad +nobody +rejected +unknown_tool: `).MatchString(rows[1]) {
		t.Errorf("rows %q", rows)
	}
}

// Documents come as JSON lines from standard input, from files, as data or as
// whole events, and what is wrong with one is told by its result.
func TestContractSend(t *testing.T) {
	t.Parallel()
	c := newContract(t, codesCatalogue)
	c.mkdir(t, "p")
	var documents strings.Builder
	const n = 200
	for i := range n {
		fmt.Fprintf(&documents, `{"project":"p","inline":{"code":"result = input_data['n'] + 1"},"input":{"n":%d}}`+"\n", i)
	}
	c.publisher.Stdin = documents.String() + structured("whole", "", call("p", "nobody", "")) + "\n" + `{"project":"p","tool":"echo","inptu":{}}`
	ran := c.publisher.Run("send", "-", "--wait", "--json")
	if ran.Code != 1 || ran.Stderr != "" {
		t.Errorf("exit %d, stderr %q", ran.Code, ran.Stderr)
	}
	values, codes := map[string]int{}, map[string]int{}
	for line := range strings.Lines(ran.Stdout) {
		var r fleet.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if r.Error != nil {
			codes[r.Error.Code]++
			continue
		}
		values[string(r.Value)]++
	}
	for i := range n {
		if values[fmt.Sprint(i+1)] != 1 {
			t.Errorf("document %d: %d results", i, values[fmt.Sprint(i+1)])
		}
	}
	if codes["unknown_tool"] != 1 || codes["invalid_request"] != 1 || len(codes) != 2 {
		t.Errorf("errors %v", codes)
	}
	if ran := c.publisher.Run("send", filepath.Join(c.base, "missing.json")); ran.Code != 2 {
		t.Errorf("a file that is not there: exit %d, want 2", ran.Code)
	}
}
