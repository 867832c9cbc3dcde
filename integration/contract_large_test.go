package integration

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/toolworker/toolworker/internal/tool"
)

const largeCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
---
kind: Tool
name: echo
command: [cat]
---
kind: Tool
name: tell
command: [python3, -I, -c, "import sys; sys.stdout.write('ä€' * 400_000); sys.stderr.write('e' * 700_000)"]
---
kind: Tool
name: truncated
command: [python3, -I, -c, "import sys; sys.stdout.write('x' + 'ä' * 1_000_000)"]
limits: {max_output_bytes: 1000000}
---
kind: Tool
name: size
command: [python3, -I, -c, "import json, sys; print(len(json.load(sys.stdin)['text']))"]
`

// A result that is too large for a message keeps the heads of its texts, and
// the rest is where its references say.
func TestContractLargeResults(t *testing.T) {
	t.Parallel()
	c := newContract(t, largeCatalogue)
	c.mkdir(t, "p")

	whole := strings.Repeat("ä€", 400_000)
	doc := c.ask(t, "p", "text", call("p", "tell", ""))
	if !doc.Success || doc.Truncated || len(doc.Refs) != 3 {
		t.Fatalf("%.500s", doc.Raw)
	}
	for member, want := range map[string]string{"output": whole, "stdout": whole, "stderr": strings.Repeat("e", 700_000)} {
		ref := doc.Refs[member]
		if ref.Object != "p/text/"+member {
			t.Errorf("%s: object %q", member, ref.Object)
		}
		if got := c.object(t, ref); string(got) != want {
			t.Errorf("%s: %d bytes, want %d", member, len(got), len(want))
		}
	}
	var head string
	if err := json.Unmarshal(doc.Output, &head); err != nil {
		t.Fatal(err)
	}
	for member, head := range map[string]string{"output": head, "stdout": *doc.Stdout, "stderr": *doc.Stderr} {
		if len(head) < 8<<10-utf8.UTFMax || len(head) > 8<<10 || !utf8.ValidString(head) || strings.ContainsRune(head, utf8.RuneError) {
			t.Errorf("%s: a head of %d bytes", member, len(head))
		}
	}

	// A document is absent where it was, and whole where it went.
	doc = c.ask(t, "p", "value", inline("p", "print('beside')\nresult = [2**53 + 1] * 40_000", ""))
	if !doc.Success || doc.Value != nil || string(doc.Output) != `"beside\n"` || len(doc.Refs) != 1 {
		t.Fatalf("%.500s", doc.Raw)
	}
	value := c.object(t, doc.Refs["value"])
	var numbers []json.Number
	if err := json.Unmarshal(value, &numbers); err != nil || len(numbers) != 40_000 || numbers[39_999] != "9007199254740993" {
		t.Errorf("value of %d bytes: %d numbers, %v", len(value), len(numbers), err)
	}

	// Cut at a character, by bytes, per stream.
	doc = c.ask(t, "p", "cut", call("p", "truncated", ""))
	if !doc.Success || !doc.Truncated || doc.Refs["stdout"].SizeBytes != 999_999 || doc.Refs["output"].SizeBytes != 999_999 {
		t.Errorf("%.500s", doc.Raw)
	}

	// Objects expire with the results.
	for bucket, age := range map[string]time.Duration{"OBJ_tool_payloads": 7 * 24 * time.Hour, "TOOL_RESULTS": 7 * 24 * time.Hour} {
		s, err := c.client.JetStream().Stream(t.Context(), bucket)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().Config.MaxAge; got != age {
			t.Errorf("%s: kept for %s, want %s", bucket, got, age)
		}
	}
}

// watch shows results whole as well.
func TestContractLargeWatched(t *testing.T) {
	t.Parallel()
	c := newContract(t, largeCatalogue)
	c.mkdir(t, "p")
	cmd := c.publisher.Command("watch", "--json", "--count", "1")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	eventually(t, "one result is seen", func() bool {
		c.ask(t, "p", rand.Text(), call("p", "tell", ""))
		return len(ended) > 0
	})
	var r struct {
		Output string
		Refs   map[string]tool.Ref
	}
	if err := errors.Join(<-ended, json.Unmarshal(stdout.Bytes(), &r)); err != nil || r.Output != strings.Repeat("ä€", 400_000) || r.Refs != nil {
		t.Errorf("output of %d bytes, references %v, %v", len(r.Output), r.Refs, err)
	}
}

// The publisher puts things together again, and makes references by itself.
func TestContractLargeByPublisher(t *testing.T) {
	t.Parallel()
	c := newContract(t, largeCatalogue)
	c.mkdir(t, "p")
	whole := strings.Repeat("ä€", 400_000)

	ran := c.publisher.MustRun("run", "tell", "-p", "p", "--id", "text")
	if ran.Stdout != whole || !strings.HasPrefix(ran.Stderr, strings.Repeat("e", 700_000)) {
		t.Errorf("%d bytes on stdout, %d on stderr", len(ran.Stdout), len(ran.Stderr))
	}
	for _, args := range [][]string{{"result", "p", "text"}, {"run", "tell", "-p", "p"}} {
		var r struct {
			Output, Stdout string
			Refs           map[string]tool.Ref
		}
		ran := c.publisher.MustRun(args[0], append(args[1:], "--json")...)
		if err := json.Unmarshal([]byte(ran.Stdout), &r); err != nil || r.Output != whole || r.Stdout != whole || r.Refs != nil {
			t.Errorf("%v: output of %d bytes, stdout of %d, references %v, %v", args, len(r.Output), len(r.Stdout), r.Refs, err)
		}
	}

	// A store whose object is another one by now is told, not shown.
	store, err := c.client.JetStream().ObjectStore(t.Context(), "tool_payloads")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutString(t.Context(), "p/text/output", "forged"); err != nil {
		t.Fatal(err)
	}
	if ran := c.publisher.Run("result", "p", "text"); ran.Code != 1 || ran.Stdout != "" || !strings.Contains(ran.Stderr, "fetch output: object p/text/output") {
		t.Errorf("forged: exit %d, stdout %.100q, stderr %.300q", ran.Code, ran.Stdout, ran.Stderr)
	}

	// Large inputs.
	text := strings.Repeat("0123456789", 200_000)
	input := `{"text":"` + text + `"}`
	file := filepath.Join(c.base, "input.json")
	if err := os.WriteFile(file, []byte(input), 0o600); err != nil {
		t.Fatal(err)
	}
	if ran := c.publisher.MustRun("run", "size", "-p", "p", "--input-file", file); ran.Stdout != "2000000\n" {
		t.Errorf("large input: %q", ran.Stdout)
	}
	data := call("p", "size", `,"input":`+input)
	c.publisher.Stdin = strings.Join([]string{
		data,
		structured("whole", "", data),
		strings.Replace(structured("encoded", "", `"`+base64Of(data)+`"`), `"data":`, `"data_base64":`, 1),
		call("p", "size", `,"input":{"text":"small"}`),
	}, "\n")
	var lines []string
	ran = c.publisher.MustRun("send", "-", "--wait", "--json")
	for line := range strings.Lines(ran.Stdout) {
		var r struct{ Stdout string }
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, r.Stdout)
	}
	if got := strings.Join(lines, ""); len(lines) != 4 || strings.Count(got, "2000000\n") != 3 || strings.Count(got, "5\n") != 1 {
		t.Errorf("send: %q", lines)
	}
	s, err := c.client.JetStream().Stream(t.Context(), "OBJ_tool_inputs_p")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.CachedInfo().Config.MaxAge; got != 7*24*time.Hour {
		t.Errorf("large inputs are kept for %s", got)
	}
	if bytes.Contains([]byte(c.worker.Log()), []byte("0123456789")) {
		t.Error("the worker logged an input")
	}
}
