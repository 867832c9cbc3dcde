package exectest

import (
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

var processes = []test{
	{"success", func(t *testing.T, s *Subject) {
		for form, task := range s.forms() {
			e := s.run(t, task("print('hello')"))
			e.wantExit(t, 0)
			if e.stdout+e.combined != "hello\n" || e.stderr != "" || e.Truncated || e.Hit != "" {
				t.Errorf("%s: %s", form, e)
			}
			if e.Duration <= 0 || e.Duration > 30*time.Second {
				t.Errorf("%s: duration %s", form, e.Duration)
			}
		}
	}},
	{"case 1: a grandchild that left the session holds stdout, and the answer comes at once", func(t *testing.T, s *Subject) {
		const source = holdLock + `
import sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        while True: time.sleep(60)
    os._exit(0)
os.wait()
print("parent done")
`
		for form, task := range s.forking(t) {
			begin := time.Now()
			e := s.run(t, task(source))
			e.wantExit(t, 0)
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("%s: took %s", form, took)
			}
			if e.stdout+e.combined != "parent done\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 8: exit codes of Python", func(t *testing.T, s *Subject) {
		for source, want := range map[string]struct {
			code int
			says string
		}{
			"import sys; sys.exit()":                       {0, ""},
			"import sys; sys.exit(0)":                      {0, ""},
			"import sys; sys.exit(3)":                      {3, ""},
			"import sys; sys.exit(300)":                    {44, ""},
			"import sys; sys.exit('x')":                    {1, "x\n"},
			"import os; os._exit(7)":                       {7, ""},
			"raise SystemExit(9)":                          {9, ""},
			"raise ValueError('why')":                      {1, "ValueError: why"},
			"1 +":                                          {1, "SyntaxError"},
			"import atexit; atexit.register(print, 'bye')": {0, "bye\n"},
		} {
			for form, task := range s.forms() {
				e := s.run(t, task(source))
				if e.StartError != "" || e.TimedOut || e.Signal != "" || e.ExitCode != want.code || !strings.Contains(e.all(), want.says) {
					t.Errorf("%s %q: %s", form, source, e)
				}
			}
		}
	}},
	{"case 8: what is printed before a hard exit is kept as far as it was flushed", func(t *testing.T, s *Subject) {
		for form, task := range s.forms() {
			e := s.run(t, task("import os; print('flushed', flush=True); os._exit(7)"))
			e.wantExit(t, 7)
			if e.all() != "flushed\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 8: ends by signal", func(t *testing.T, s *Subject) {
		for signal, code := range map[string]int{"SIGSEGV": 139, "SIGABRT": 134, "SIGKILL": 137, "SIGTERM": 143} {
			for form, task := range s.forms() {
				e := s.run(t, task("import os, signal; os.kill(os.getpid(), signal."+signal+")"))
				if e.Signal != signal || e.ExitCode != code || e.TimedOut || e.StartError != "" {
					t.Errorf("%s %s: %s", form, signal, e)
				}
			}
		}
	}},
	{"case 9: unlimited recursion is an error", func(t *testing.T, s *Subject) {
		for form, task := range s.forms() {
			e := s.run(t, task("def f(): f()\nf()"))
			e.wantExit(t, 1)
			if !strings.Contains(e.all(), "RecursionError") {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 9: recursion without a bound of its own ends", func(t *testing.T, s *Subject) {
		for form, task := range s.forms() {
			e := s.run(t, task("import sys; sys.setrecursionlimit(300_000)\ndef f(): f()\nf()"))
			if e.ExitCode == 0 || e.TimedOut || e.StartError != "" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 5: a memory bomb is out of memory", func(t *testing.T, s *Subject) {
		if !s.Memory {
			t.Skip("this backend does not tell that the memory limit was hit")
		}
		for form, make := range s.forms() {
			// No more than 1 GiB, lest a backend without the limit takes the machine along.
			task := make("b = [b'x' * (1 << 20) for _ in range(1024)]")
			task.Limits.MemoryBytes = 128 << 20
			e := s.run(t, task)
			if e.Hit != tool.OutOfMemory || e.ExitCode == 0 || e.TimedOut || e.StartError != "" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 6: open files run out inside", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("import errno\nf = []\ntry:\n  for _ in range(5000): f.append(open('/dev/null'))\nexcept OSError as e: print(errno.errorcode[e.errno], len(f) < 64)")
			task.Limits.OpenFiles = 64
			e := s.run(t, task)
			e.wantExit(t, 0)
			if e.all() != "EMFILE True\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 23: a file that grows too large", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("f = open('/tmp/exectest-large', 'wb')\nimport os; os.unlink(f.name)\nf.truncate(1 << 40)\nprint('made')")
			task.Limits.FileSizeBytes = 1 << 20
			if e := s.run(t, task); e.ExitCode == 0 || strings.Contains(e.all(), "made") {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"a command that is not there, not executable, a directory", func(t *testing.T, s *Subject) {
		for _, name := range []string{"exectest-no-such-command", "/no/such/command", "/etc", "./" + lockFile} {
			e := s.run(t, s.command(name))
			if e.StartError == "" || e.all() != "" {
				t.Errorf("%s: %s", name, e)
			}
			if !strings.Contains(e.StartError, name) {
				t.Errorf("%s: the reason does not name it: %q", name, e.StartError)
			}
		}
	}},
}
