package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/tool"
)

// load reads the sample catalogue as a worker would, from a copy.
func load(t *testing.T) *catalog.Snapshot {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalogue")
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	s, faults, err := catalog.LoadDirectory(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	return s
}

func TestSampleIsWhole(t *testing.T) {
	s := load(t)
	for _, name := range []string{"file_read", "file_write", "file_list", "text_search", "word_count", "sleep", "fail"} {
		d, ok := s.Tool(name)
		if !ok {
			t.Errorf("there is no tool %s", name)
			continue
		}
		if d.Description == "" || d.Capability.Network || d.Capability.Writes != (name == "file_write") {
			t.Errorf("%s: %+v", name, d)
		}
	}
	demo, _ := s.Project("demo")
	locked, _ := s.Project("demo-locked")
	if demo == nil || locked == nil || demo.ReadOnly || !locked.ReadOnly {
		t.Errorf("projects: %+v, %+v", demo, locked)
	}
	for _, p := range s.ProjectsAt("/somewhere/else") {
		if p.HostSandboxPath != "/somewhere/else" {
			t.Errorf("%s is at %s", p.ID, p.HostSandboxPath)
		}
	}
	if demo.HostSandboxPath != "" {
		t.Error("ProjectsAt changed the snapshot")
	}
	// The directory itself can be served too.
	if _, faults, err := catalog.LoadDirectory("."); err != nil || len(faults) > 0 {
		t.Error(err, faults)
	}
}

// outcome is how a command of the catalogue ended.
type outcome struct {
	stdout, stderr string
	code           int
}

// run runs a command of the catalogue in project, as the contract says:
// input on stdin, the project's root as working directory.
func run(t *testing.T, s *catalog.Snapshot, project, name, input string) outcome {
	t.Helper()
	if err := s.InputSchema(name).CheckInput(json.RawMessage(input)); err != nil {
		t.Fatal(err)
	}
	d, _ := s.Tool(name)
	argv := append([]string{}, d.Command...)
	for i, arg := range argv {
		if strings.HasSuffix(arg, ".py") {
			argv[i] = filepath.Join(d.Dir, arg)
		}
	}
	c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	c.Dir, c.Stdin, c.Stdout, c.Stderr = project, strings.NewReader(input), &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if err == nil {
		if err := s.OutputSchema(name).CheckOutput(stdout.Bytes()); err != nil {
			t.Error(err)
		}
	}
	return outcome{stdout.String(), stderr.String(), c.ProcessState.ExitCode()}
}

func TestSampleCommands(t *testing.T) {
	s := load(t)
	project := t.TempDir()
	for name, text := range map[string]string{"a.txt": "one\ntwo\nthree\n", "sub/b.md": "# two words\n", "binary": "two\x00"} {
		path := filepath.Join(project, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, tool, input string
		want              outcome
	}{
		{"all", "file_read", `{"path":"a.txt"}`, outcome{stdout: `{"text": "one\ntwo\nthree\n", "lines": 3, "more": false}`}},
		{"some", "file_read", `{"path":"a.txt","count":2}`, outcome{stdout: `{"text": "one\ntwo\n", "lines": 2, "more": true}`}},
		{"just all", "file_read", `{"path":"a.txt","count":3}`, outcome{stdout: `{"text": "one\ntwo\nthree\n", "lines": 3, "more": false}`}},
		{"missing", "file_read", `{"path":"nosuch"}`, outcome{code: 1, stderr: "nosuch: No such file or directory\n"}},
		{"directory", "file_read", `{"path":"sub"}`, outcome{code: 1, stderr: "sub: Is a directory\n"}},
		{"write", "file_write", `{"path":"new/c.txt","text":"four\n"}`, outcome{stdout: `{"path": "new/c.txt", "size_bytes": 5}`}},
		{"written", "file_read", `{"path":"new/c.txt"}`, outcome{stdout: `{"text": "four\n", "lines": 1, "more": false}`}},
		{"replace", "file_write", `{"path":"new/c.txt","text":"2\n"}`, outcome{stdout: `{"path": "new/c.txt", "size_bytes": 2}`}},
		{"write to a directory", "file_write", `{"path":"sub","text":"x"}`, outcome{code: 1, stderr: "sub: Is a directory\n"}},
		{"list", "file_list", `{}`, outcome{stdout: `{"files": [{"path": "a.txt", "size_bytes": 14}, {"path": "binary", "size_bytes": 4}, {"path": "new/c.txt", "size_bytes": 2}, {"path": "sub/b.md", "size_bytes": 12}], "more": false}`}},
		{"list some", "file_list", `{"pattern":"**/*.*","limit":1}`, outcome{stdout: `{"files": [{"path": "a.txt", "size_bytes": 14}], "more": true}`}},
		{"list elsewhere", "file_list", `{"pattern":"../*"}`, outcome{code: 1, stderr: "../*: expected a pattern below the project's root\n"}},
		{"search", "text_search", `{"expression":"t[wh]"}`, outcome{stdout: `{"matches": [{"path": "a.txt", "line": 2, "text": "two"}, {"path": "a.txt", "line": 3, "text": "three"}, {"path": "sub/b.md", "line": 1, "text": "# two words"}], "more": false}`}},
		{"search some", "text_search", `{"expression":"two","limit":1}`, outcome{stdout: `{"matches": [{"path": "a.txt", "line": 2, "text": "two"}], "more": true}`}},
		{"search for nonsense", "text_search", `{"expression":"("}`, outcome{code: 1, stderr: "expression: missing ), unterminated subpattern at position 0\n"}},
		{"fail", "fail", `{}`, outcome{code: 3, stderr: "it was told to fail\n"}},
		{"sleep", "sleep", `{"seconds":0}`, outcome{stdout: "{\"slept_seconds\": 0}\n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := run(t, s, project, tt.tool, tt.input); got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
	left, err := filepath.Glob(filepath.Join(project, ".write-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestSampleInputs(t *testing.T) {
	s := load(t)
	for _, tt := range []struct{ tool, input string }{
		{"file_read", `{}`}, {"file_read", `{"path":5}`}, {"file_read", `{"path":"a","count":0}`}, {"file_read", `{"path":"a","lines":1}`},
		{"file_write", `{"path":"a"}`}, {"sleep", `{"seconds":-1}`}, {"word_count", `{"path":""}`}, {"text_search", `{}`},
	} {
		if err := s.InputSchema(tt.tool).CheckInput(json.RawMessage(tt.input)); err == nil || err.Code != tool.InvalidInput {
			t.Errorf("%s %s: %v", tt.tool, tt.input, err)
		}
	}
}

// The code of a tool sees its input as input_data and leaves a result.
func TestSampleCode(t *testing.T) {
	d, _ := load(t).Tool("word_count")
	file := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(file, []byte("To be, or not\nto be.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const around = `
import json, sys
names = {"input_data": {"path": sys.argv[1], "top": 2}}
exec(compile(sys.stdin.read(), "word_count", "exec"), names)
print(json.dumps(names["result"]))
`
	c := exec.CommandContext(t.Context(), "python3", "-I", "-c", around, file)
	c.Stdin = strings.NewReader(d.Code)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := "2 lines, 6 words, 21 characters\n" +
		`{"lines": 2, "words": 6, "characters": 21, "common": [{"word": "to", "count": 2}, {"word": "be", "count": 2}]}` + "\n"
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}
