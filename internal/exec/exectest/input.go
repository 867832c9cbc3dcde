package exectest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

var input = []test{
	{"a command reads its input as JSON on stdin", func(t *testing.T, s *Subject) {
		task := s.python("import sys; sys.stdout.write(sys.stdin.read())")
		task.Input = json.RawMessage(`{"path": "é", "n": 9007199254740993}`)
		e := s.run(t, task)
		e.wantExit(t, 0)
		if e.stdout != string(task.Input) {
			t.Errorf("%s", e)
		}
	}},
	{"code has its input as input_data", func(t *testing.T, s *Subject) {
		task := s.code("print(type(input_data).__name__, input_data['n'] + 1, input_data['s'], input_data['l'], input_data['f'])")
		task.Input = json.RawMessage(`{"n": 9007199254740993, "s": "é\u0000", "l": [null, true, {"a": []}], "f": 1e2}`)
		e := s.run(t, task)
		e.wantExit(t, 0)
		if e.combined != "dict 9007199254740994 é\x00 [None, True, {'a': []}] 100.0\n" {
			t.Errorf("%s", e)
		}
	}},
	{"code has nothing on stdin", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import sys; print(repr(sys.stdin.read()))"))
		e.wantExit(t, 0)
		if e.combined != "''\n" {
			t.Errorf("%s", e)
		}
	}},
	{"case 13: 8 MiB of input that nobody reads", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("print('ready')")
			task.Input = json.RawMessage(`{"x": "` + strings.Repeat("y", 8<<20) + `"}`)
			e := s.run(t, task)
			e.wantExit(t, 0)
			if e.all() != "ready\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 13: 8 MiB of input and output at once", func(t *testing.T, s *Subject) {
		task := s.command("cat")
		task.Input = json.RawMessage(`{"x": "` + strings.Repeat("y", 8<<20) + `"}`)
		e := s.run(t, task)
		e.wantExit(t, 0)
		if e.stdout != string(task.Input) {
			t.Errorf("%d bytes: %s", len(e.stdout), e)
		}
	}},
	{"case 37: arguments are literal", func(t *testing.T, s *Subject) {
		arguments := []string{"-x", "$(id)", "`id`", "", "a b", "*", "'", `"`, `\`, "$HOME", "é", "\n", "--", ";", strings.Repeat("long", 10_000)}
		e := s.run(t, s.python("import json, sys; print(json.dumps(sys.argv[1:]))", arguments...))
		e.wantExit(t, 0)
		var got []string
		if err := json.Unmarshal([]byte(e.stdout), &got); err != nil || fmt.Sprint(got) != fmt.Sprint(arguments) {
			t.Errorf("%v, %s", err, e)
		}
	}},
	{"case 14: code with a byte order mark", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("\ufeffprint('é')"))
		e.wantExit(t, 0)
		if e.combined != "é\n" {
			t.Errorf("%s", e)
		}
	}},
	{"case 14: code with a coding cookie", func(t *testing.T, s *Subject) {
		for source, want := range map[string]string{
			"# -*- coding: utf-8 -*-\nprint('é')":   "é\n",
			"# -*- coding: latin-1 -*-\nprint('e')": "e\n",
		} {
			e := s.run(t, s.code(source))
			e.wantExit(t, 0)
			if e.combined != want {
				t.Errorf("%q: %s", source, e)
			}
		}
	}},
	{"case 14: code with a NUL is an error that says so", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("print(1)\x00"))
		if e.ExitCode == 0 && e.StartError == "" || !strings.Contains(strings.ToLower(e.combined+e.StartError), "null") {
			t.Errorf("%s", e)
		}
	}},
	{"case 14: 2 MiB of code", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("x = '"+strings.Repeat("y", 2<<20)+"'\nprint(len(x))"))
		e.wantExit(t, 0)
		if e.combined != fmt.Sprintln(2<<20) {
			t.Errorf("%s", e)
		}
	}},
	{"code with Windows newlines and without a last one", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("if True:\r\n  print(1)\r\n  print(2)"))
		e.wantExit(t, 0)
		if e.combined != "1\n2\n" {
			t.Errorf("%s", e)
		}
	}},
	{"a traceback names the code and its line", func(t *testing.T, s *Subject) {
		task := s.code("x = 1\nraise KeyError('k')")
		task.Name = "my-tool"
		e := s.run(t, task)
		e.wantExit(t, 1)
		if !strings.Contains(e.combined, "my-tool") || !strings.Contains(e.combined, "line 2") || !strings.Contains(e.combined, "KeyError: 'k'") {
			t.Errorf("%s", e)
		}
	}},
	{"code is a main module of its own", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import sys\nclass A: pass\nprint(__name__, A.__module__, sys.modules['__main__'].A is A)\ndef f(): return g()\ndef g(): return 7\nprint(f())"))
		e.wantExit(t, 0)
		if e.combined != "__main__ __main__ True\n7\n" {
			t.Errorf("%s", e)
		}
	}},
}
