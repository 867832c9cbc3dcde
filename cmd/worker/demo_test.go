package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/schemas"
)

func TestDemo(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	begun := time.Now()
	var out, errs bytes.Buffer
	if err := run(t.Context(), t.Context(), []string{"demo"}, command.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it took %s", took)
	}
	for _, want := range []string{
		"of this checkout", "isolation ", "01-read-a-file", "unknown_tool", "path_escape", "read_only", "Execution timed out after 0.5s",
		"planner ", "└─ send tools.request ", "   └─ process tools.request ", "      ├─ execute_tool inline ", "exec ", "ack tools.request ", "7 of 7 requests ended as their samples say",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDemoOutsideOfACheckoutAsJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	if err := run(t.Context(), t.Context(), []string{"demo", "--json"}, command.Streams{Out: &out, Err: &errs}); err != nil {
		t.Fatalf("%v\n%s%s", err, out.String(), errs.String())
	}
	samples, err := schemas.Samples()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(samples)+1 {
		t.Fatalf("%d lines for %d samples", len(lines), len(samples))
	}
	for i, line := range lines {
		var l struct {
			Sample     string           `json:"sample"`
			AsExpected bool             `json:"as_expected"`
			Result     *event.ResultDoc `json:"result"`
			TraceID    string           `json:"trace_id"`
			Spans      []any            `json:"spans"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		last := i == len(samples)
		if !last && (!l.AsExpected || l.Result == nil || l.Sample == "") || last && (len(l.TraceID) != 32 || len(l.Spans) < 9) {
			t.Errorf("line %d: %s", i, line)
		}
	}
}

func TestDemoTellsWhatDiffers(t *testing.T) {
	doc := &event.ResultDoc{Tool: "cat", Status: "succeeded", Success: true, Output: []byte(`"a\nb\n"`), Value: []byte(`1`)}
	var out bytes.Buffer
	v := newView(&out, false)
	if err := v.serving(&service{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := v.result(answer{sample: schemas.Sample{Name: "x"}, doc: doc, differences: []string{"/status: wrong"}}); err != nil {
		t.Fatal(err)
	}
	if err := v.result(answer{sample: schemas.Sample{Name: "y"}, differences: []string{"nobody answered"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a | b => 1\n", "  not as its sample says: /status: wrong\n", "no result", "nobody answered"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestCopyOfACheckout(t *testing.T) {
	root, to := t.TempDir(), t.TempDir()
	for _, dir := range []string{"sub", ".git", "bin", "node_modules"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, dir, "file"), "x")
	}
	write(t, filepath.Join(root, "go.mod"), module+"\ngo 1.26\n")
	write(t, filepath.Join(root, "large"), strings.Repeat("x", maxCopiedSize+1))
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	what, err := copyProject(filepath.Join(root, "sub"), to)
	if err != nil || what != "a copy of 2 files of this checkout" {
		t.Fatalf("%s, %v", what, err)
	}
	for _, name := range []string{"go.mod", "sub/file"} {
		if _, err := os.Stat(filepath.Join(to, name)); err != nil {
			t.Error(err)
		}
	}
	if got := checkout(to + "/elsewhere"); got != to {
		t.Errorf("the checkout is %q", got)
	}
	if got := checkout(t.TempDir()); got != "" {
		t.Errorf("a checkout where there is none: %q", got)
	}
}
