package python

import (
	"fmt"
	"strings"
	"testing"
)

// check runs code and compares everything that it left behind.
func check(t *testing.T, code string, want outcome) {
	t.Helper()
	got := runCold(t, &Request{Name: "tool", Code: []byte(code)})
	got.cpu = 0
	if got != want {
		t.Errorf("code %q\ngot  %+v\nwant %+v", code, got, want)
	}
}

// CASES 11: exact between sys.stdout and sys.stderr, however they are written to.
func TestOrder(t *testing.T) {
	var lines strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&lines, "out %d\nerr %d\n", i, i)
	}
	for name, c := range map[string]struct{ code, want string }{
		"lines":    {"import sys\nfor i in range(2000):\n  print('out', i)\n  print('err', i, file=sys.stderr)", lines.String()},
		"no lines": {"import sys\nfor i in range(3):\n  sys.stdout.write('o%d ' % i)\n  sys.stderr.write('e%d ' % i)", "o0 e0 o1 e1 o2 e2 "},
		"buffers": {"import sys\nsys.stdout.write('a')\nsys.stderr.buffer.write(b'b')\nsys.stdout.flush()\nsys.stdout.buffer.write(b'c')\n" +
			"sys.stdout.buffer.flush()\nsys.stderr.write('d')", "abcd"},
		"traceback last": {"print('first')\n1/0", "first\nTraceback (most recent call last):\n  File \"<tool>\", line 2, in <module>\n    1/0\n" +
			pointer("    ", "1/0", "/") + "ZeroDivisionError: division by zero\n"},
		"wrapped":  {"import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('a')\nprint('b', file=sys.stderr)\nprint('c')", "a\nb\nc\n"},
		"same":     {"import sys\nsys.stdout = sys.stderr\nprint('a')\nsys.__stdout__.write('b\\n')\nprint('c')", "a\nb\nc\n"},
		"closed":   {"import sys\nprint('a')\nsys.stdout.close()\nprint('b', file=sys.stderr)", "a\nb\n"},
		"no out":   {"import sys\nsys.stdout = None\nprint('a')\nprint('b', file=sys.stderr)", "b\n"},
		"detached": {"import sys\nprint('a')\nraw = sys.stdout.detach()\nprint('b', file=sys.stderr)\nraw.write(b'c\\n')\nraw.flush()\nsys.stdout = None", "a\nb\nc\n"},
		"child":    {"import os, sys\nprint('a', flush=True)\nos.system('echo b')\nprint('c', file=sys.stderr)\nos.write(1, b'd\\n')", "a\nb\nc\nd\n"},
		"big":      {"import sys\nprint('x' * 200000)\nprint('y' * 200000, file=sys.stderr)", strings.Repeat("x", 200000) + "\n" + strings.Repeat("y", 200000) + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			if got.output != c.want {
				t.Errorf("code %q\ngot  %.200q\nwant %.200q", c.code, got.output, c.want)
			}
		})
	}
}

// pointer is the line of ~ and ^ below a source line, from Python 3.11 on.
func pointer(indent, source, operator string) string {
	if python, err := interpreter(); err != nil || python.Version[1] < 11 {
		return ""
	}
	at := strings.Index(source, operator)
	return indent + strings.Repeat("~", at) + "^" + strings.Repeat("~", len(source)-at-1) + "\n"
}

// CASES 12
func TestLoneSurrogate(t *testing.T) {
	got := runCold(t, &Request{Name: "tool", Code: []byte(`print("before"); print("\ud800")`)})
	if got.exit != 1 || !strings.HasPrefix(got.output, "before\n") ||
		!strings.Contains(got.output, "UnicodeEncodeError: 'utf-8' codec can't encode character '\\ud800'") {
		t.Errorf("got %+v", got)
	}
	check(t, `import sys; print("\ud800", file=sys.stderr)`, outcome{output: "\\ud800\n"})
}

// The streams are UTF-8 whatever the locale says.
func TestLocale(t *testing.T) {
	for _, env := range []string{"LANG=C", "LC_ALL=POSIX", "LANG=de_DE.ISO-8859-1", "PYTHONIOENCODING=latin-1", "PYTHONUTF8=0"} {
		got := runCold(t, &Request{Name: "tool", Code: []byte("import sys\nprint('é', sys.stdout.encoding, sys.stdout.errors, sys.stderr.encoding, sys.stderr.errors)")}, env)
		if want := "é utf-8 strict utf-8 backslashreplace\n"; got.output != want {
			t.Errorf("%s: %q, want %q", env, got.output, want)
		}
	}
}

func TestUnwritableOutput(t *testing.T) {
	got := runCold(t, &Request{Name: "tool", Code: []byte("import os\nprint('lost')\nos.close(1)")})
	if got.exit != 120 || !strings.Contains(got.output, "Bad file descriptor") {
		t.Errorf("got %+v, want Python's exit status 120 and the reason", got)
	}
	got = runCold(t, &Request{Name: "tool", Code: []byte("import os\nos.close(1); os.close(2)\nraise SystemExit(3)")})
	if got.exit != 3 || got.output != "" {
		t.Errorf("got %+v", got)
	}
}
