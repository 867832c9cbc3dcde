package python

import (
	"strings"
	"testing"
)

func TestTracebacks(t *testing.T) {
	for name, c := range map[string]struct {
		code     string
		contains []string
		exit     int
	}{
		"syntax":   {"x = 1\nprint(", []string{"  File \"<tool>\", line 2\n    print(\n         ^\nSyntaxError: "}, 1},
		"indent":   {"if 1:\nx", []string{"IndentationError: "}, 1},
		"chained":  {"try:\n  1/0\nexcept Exception as e:\n  raise ValueError('v') from e", []string{"    1/0\n", "direct cause", "    raise ValueError('v') from e\n", "ValueError: v\n"}, 1},
		"printed":  {"import traceback\ntry:\n  1/0\nexcept Exception:\n  traceback.print_exc()", []string{"  File \"<tool>\", line 3, in <module>\n    1/0\n"}, 0},
		"inspect":  {"import inspect\ndef f():\n  return 7\nprint(inspect.getsource(f))", []string{"def f():\n  return 7\n"}, 0},
		"thread":   {"import threading\ndef f():\n  1/0\nt = threading.Thread(target=f)\nt.start()\nt.join()\nprint('on')", []string{"in f\n", "ZeroDivisionError", "on\n"}, 0},
		"hook":     {"import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__, tb.tb_frame.f_code.co_filename)\n1/0", []string{"hook ZeroDivisionError <tool>\n"}, 1},
		"hook no":  {"import sys\nsys.excepthook = lambda *a: 1/0\n[].x", []string{"Error in sys.excepthook:\n", "ZeroDivisionError", "Original exception was:\n", "AttributeError"}, 1},
		"hook out": {"import sys\nsys.excepthook = lambda *a: sys.exit(5)\n[].x", nil, 5},
		"no hook":  {"import sys\ndel sys.excepthook\n[].x", []string{"sys.excepthook is missing"}, 1},
		"broken":   {"import sys, types\nsys.modules['traceback'] = types.ModuleType('traceback')\n[].x", []string{"AttributeError"}, 1},
		"no err":   {"import sys\nsys.stderr = None\n[].x", nil, 1},
		"deep":     {"def f(): f()\nf()", []string{"RecursionError", "Previous line repeated"}, 1},
		"no limit": {"import sys\nsys.setrecursionlimit(1 << 30)\nclass A(Exception): pass\ndef f(n):\n  if n: f(n - 1)\n  else: raise A\nf(5000)", []string{"A\n"}, 1},
		"group":    {"import sys\nif sys.version_info < (3, 11): raise ValueError('one')\nraise ExceptionGroup('g', [ValueError('one')])", []string{"ValueError: one"}, 1},
		"base":     {"class E(BaseException): pass\nraise E('e')", []string{"E: e\n"}, 1},
		"bad str":  {"class E(Exception):\n  def __str__(self): 1/0\nraise E", []string{"E: <exception str() failed>\n"}, 1},
		"trace":    {"import sys\nsys.settrace(lambda *a: print('traced', a[1], a[0].f_code.co_filename))\nsys.setprofile(lambda *a: None)", nil, 0},
		"warning":  {"import warnings\nwarnings.warn('w')", []string{"<tool>:2: UserWarning: w\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			if got.exit != c.exit {
				t.Errorf("exit %d, want %d", got.exit, c.exit)
			}
			for _, s := range c.contains {
				if !strings.Contains(got.output, s) {
					t.Errorf("output %q lacks %q", got.output, s)
				}
			}
			for _, s := range []string{"toolworker", "exec(", "compile("} {
				if strings.Contains(got.output, s) {
					t.Errorf("output %q shows the bootstrap: %q", got.output, s)
				}
			}
		})
	}
}

// CASES 14
func TestSource(t *testing.T) {
	long := "x = 0\n" + strings.Repeat("x += 1  # "+strings.Repeat("-", 90)+"\n", 20<<10) + "print(x)"
	for name, c := range map[string]struct {
		code     string
		exit     int
		contains string
	}{
		"bom":        {"\ufeffprint('é')", 0, "é\n"},
		"cookie":     {"# coding: latin-1\nprint('\xe9')", 0, "é\n"},
		"bad cookie": {"# coding: klingon\nprint(1)", 1, "unknown encoding"},
		"bad utf-8":  {"print('\xe9')", 1, "SyntaxError"},
		"nul":        {"print(1)\x00", 1, "null bytes"},
		"crlf":       {"if 1:\r\n  print(1)\r\n", 0, "1\n"},
		"no newline": {"1/0", 1, "    1/0\n"},
		"2 MiB":      {long, 0, "20480\n"},
		"docstring":  {"'''doc'''\nprint(__doc__)", 0, "doc\n"},
		"future":     {"from __future__ import annotations\nx: nothing = 1\nprint(__annotations__)", 0, "{'x': 'nothing'}\n"},
		"await":      {"await x", 1, "SyntaxError"},
		"comment":    {"# nothing", 0, ""},
		"cookie lines": {"# coding: latin-1\nraise ValueError('\xe9')", 1,
			"    raise ValueError('é')\nValueError: é\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			if got.exit != c.exit || !strings.Contains(got.output, c.contains) {
				t.Errorf("exit %d, output %.300q; want %d, %q", got.exit, got.output, c.exit, c.contains)
			}
		})
	}
}
