package sandbox

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestCase01DoubleForkThatKeepsStdout(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.needProcesses()
		m := mark()
		r := l.shell("(setsid sh -c '(sleep %[1]s & sleep %[1]s) & sleep %[1]s' &) ; setsid sleep %[1]s & echo started", m)
		l.wants(r, "started\n")
		l.noSurvivor(m)
		if r.Duration > 5*time.Second {
			l.Errorf("took %s", r.Duration)
		}
	})
}

func TestCase01DoubleForkOfInlineCode(t *testing.T) {
	inLab(t, []tool.Isolation{tool.IsolationFull, tool.IsolationNone}, func(l *lab) {
		m := mark()
		r := l.python(`
import os, subprocess
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp('sleep', ['sleep', '%s'])
    os._exit(0)
print('started')
`, m)
		l.wants(r, "started\n")
		l.noSurvivor(m)
	})
}

func TestCase02EverySignalIgnored(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		r := l.run(Spec{Limits: timeout(0.5), Code: []byte(`
import signal
for s in signal.valid_signals():
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
while True:
    pass
`)})
		l.wantsTimeout(r)
	})
}

func TestCase03StreamsClosed(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wantsTimeout(l.run(Spec{Limits: timeout(0.5), Code: []byte("import os, time\nos.close(1)\nos.close(2)\ntime.sleep(100)")}))
		l.needProcesses()
		m := mark()
		l.wantsTimeout(l.run(Spec{Limits: timeout(0.5), Argv: []string{"sh", "-c", "exec >&- 2>&-; sleep " + m}}))
		l.noSurvivor(m)
	})
}

func TestCase04ForkBomb(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.needProcesses()
		l.needBound()
		var wg sync.WaitGroup
		m := mark()
		wg.Go(func() {
			lim := timeout(1)
			lim.PIDs = 40
			r := l.run(Spec{Limits: lim, Argv: []string{"sh", "-c", "b() { b | b & }; b; b; b; sleep " + m}})
			if r.Code == 0 {
				l.Errorf("a fork bomb succeeded: %v", r)
			}
		})
		for range 5 {
			l.wants(l.python("print(1)"), "1\n")
		}
		wg.Wait()
		l.noSurvivor(m)
	})
}

func TestCase04ProcessesAreBounded(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.needProcesses()
		l.needBound()
		lim := limits
		lim.PIDs = 20
		m := mark()
		r := l.run(Spec{Limits: lim, Argv: []string{"python3", "-c", `
import subprocess, sys, time
for i in range(100):
    subprocess.Popen(['sleep', sys.argv[1]])
`, m}})
		if r.Code == 0 || r.Hit != tool.TooManyProcesses {
			l.Errorf("want too_many_processes, got %v", r)
		}
		if n := r.Usage.PIDsPeak; n < 10 || n > 150 {
			l.Errorf("peak of %d processes, the limit is 20", n)
		}
		l.noSurvivor(m)
	})
}

func TestCase04ThreadBomb(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.needBound()
		r := l.python(`
import threading, time
try:
    for i in range(10000):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
except RuntimeError as e:
    print(e, 5 < i < 500)
`)
		if r.Hit == tool.TooManyProcesses && !l.hasMechanism("pids:cgroup") {
			return // ended by its supervisor, which is all that it can do
		}
		l.wants(r, "can't start new thread True\n")
	})
}

func TestCase05MemoryBomb(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		lim := limits
		lim.MemoryBytes = 96 << 20
		r := l.run(Spec{Limits: lim, Code: []byte("b = []\nwhile True:\n    b.append(bytearray(1 << 20))")})
		if r.Hit != tool.OutOfMemory || r.Signal != "SIGKILL" || r.TimedOut {
			l.Errorf("want out_of_memory, got %v", r)
		}
		if n := r.Usage.MaxRSSBytes; n < 48<<20 || n > 400<<20 {
			l.Errorf("peak memory of %d bytes, the limit is %d", n, lim.MemoryBytes)
		}
	})
}

func TestCaseLimitsThatOnlyAnExceptionTells(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		for code, want := range map[string]string{
			"bytearray(1 << 60)":                                             "out_of_memory memory_bytes",
			"f = open('f', 'wb')\nf.truncate(1 << 40)":                       "limit_exceeded file_size_bytes",
			"fs = []\nwhile True:\n    fs.append(open('/dev/null'))":         "limit_exceeded open_files",
			"open('/no/such/file')":                                          " ",
			"try:\n    bytearray(1 << 60)\nexcept MemoryError:\n    pass":    " ",
			"try:\n    bytearray(1 << 60)\nexcept MemoryError:\n    exit(3)": " ",
		} {
			r := l.python("%s", code)
			if got := string(r.Hit) + " " + r.HitName; got != want {
				t.Errorf("%s\ngave %q, want %q", code, got, want)
			}
		}
	})
}

func TestCase05MemoryBombOfManyProcesses(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		lim := limits
		lim.MemoryBytes = 128 << 20
		l.needProcesses()
		// None is over the limit by itself.
		r := l.run(Spec{Limits: lim, Argv: []string{"sh", "-c", `
for i in 1 2 3 4 5 6 7 8; do
	python3 -S -c "import time; b = bytearray(60 << 20); time.sleep(3)" || exit 9 &
	pids="$pids $!"
done
for p in $pids; do wait $p || exit 9; done`}})
		if r.Hit != tool.OutOfMemory || r.Code == 0 {
			l.Errorf("want out_of_memory, got %v", r)
		}
	})
}

func TestCase06OpenFiles(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		before := descriptors(l.T)
		r := l.python(`
import os, errno
n = 0
try:
    while True:
        os.open('/dev/null', os.O_RDONLY)
        n += 1
except OSError as e:
    print(errno.errorcode[e.errno], 100 < n < 128)
`)
		l.wants(r, "EMFILE True\n")
		if after := descriptors(l.T); after > before+40 {
			l.Errorf("the worker had %d descriptors, now %d", before, after)
		}
	})
}

func TestCase08Exits(t *testing.T) {
	cases := []struct {
		code   string
		exit   int
		signal string
		out    string
	}{
		{"import sys; sys.exit(300)", 44, "", ""},
		{"import sys; sys.exit('x')", 1, "", "x\n"},
		{"import os; os._exit(7)", 7, "", ""},
		{"import os; os.kill(os.getpid(), 11)", 139, "SIGSEGV", ""},
		{"import os; os.abort()", 134, "SIGABRT", ""},
		{"import os; os.kill(os.getpid(), 9)", 137, "SIGKILL", ""},
		{"import os; os.kill(os.getpid(), 15)", 143, "SIGTERM", ""},
		{"pass", 0, "", ""},
	}
	inLab(t, allLevels, func(l *lab) {
		for _, c := range cases {
			r := l.python("%s", c.code)
			if r.Code != c.exit || r.Signal != c.signal || r.TimedOut || r.Hit != "" || r.out != c.out {
				l.Errorf("%s: want %d %q %q, got %v", c.code, c.exit, c.signal, c.out, r)
			}
		}
		if r := l.shell("kill -9 $$"); r.Code != 137 || r.Signal != "SIGKILL" || r.TimedOut {
			l.Errorf("kill -9 of a command's own: %v", r)
		}
	})
}

func TestCase09Recursion(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		r := l.python("def f():\n    f()\nf()")
		if r.Code != 1 || !strings.Contains(r.out, "RecursionError") {
			l.Errorf("recursion: %v", r)
		}
		r = l.python("import sys\nsys.setrecursionlimit(10**9)\ndef f():\n    f()\nf()")
		if r.Code == 0 {
			l.Errorf("recursion without a limit: %v", r)
		}
	})
}

func TestCase09CallThatHoldsTheInterpreter(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wantsTimeout(l.run(Spec{Limits: timeout(0.5), Code: []byte("import re\nre.match('(a+)+$', 'a' * 64 + 'b')")}))
	})
}

func TestCaseStopped(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wantsTimeout(l.run(Spec{Limits: timeout(0.5), Code: []byte("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)")}))
	})
}

func TestCaseCancelled(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.needProcesses()
		ctx, cancel := context.WithCancelCause(l.Context())
		m := mark()
		go func() {
			eventually(l.T, "the tool is running", func() bool { return len(processesWith(m)) > 0 })
			cancel(tool.ErrCancelled)
		}()
		r := l.runWithin(ctx, Spec{Limits: timeout(60), Argv: []string{"sh", "-c", "trap '' TERM; setsid sleep " + m + " & sleep " + m}})
		if r.Signal != "SIGKILL" || r.Code != 137 || r.TimedOut || r.Hit != "" {
			l.Errorf("cancelled: %v", r)
		}
		l.noSurvivor(m)
	})
}

func TestCaseCPUSeconds(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		lim := timeout(30)
		lim.CPUSeconds = 0.4
		r := l.run(Spec{Limits: lim, Code: []byte("while True:\n    pass")})
		if r.Hit != tool.LimitExceeded || r.HitName != "cpu_seconds" || r.TimedOut {
			l.Errorf("want limit_exceeded, got %v", r)
		}
		if r.Usage.CPUMS < 300 || r.Usage.CPUMS > 10000 {
			l.Errorf("used %v ms of cpu time, the limit is 400", r.Usage.CPUMS)
		}
	})
}

func timeout(seconds float64) tool.Limits {
	l := limits
	l.TimeoutSeconds = seconds
	return l
}

func (l *lab) wantsTimeout(r result) {
	l.Helper()
	if !r.TimedOut || r.Code != 137 || r.Signal != "SIGKILL" || r.Hit != "" || r.Duration > 10*time.Second {
		l.Errorf("want a timeout, got %v", r)
	}
}

// hasMechanism reports whether a run of this level names one that begins so.
func (l *lab) hasMechanism(prefix string) bool {
	l.Helper()
	for _, m := range l.python("pass").Sandbox.Mechanisms {
		if strings.HasPrefix(m, prefix) {
			return true
		}
	}
	return false
}

// needProcesses skips a case where commands may start no processes.
func (l *lab) needProcesses() {
	l.Helper()
	if slices.Contains(l.run(Spec{Argv: []string{"true"}}).Sandbox.Missing, "processes") {
		l.Skip("commands start no processes: root without a control group at level reduced")
	}
}

// needBound skips a case where nothing bounds root's processes and threads but
// a supervisor that looks now and then.
func (l *lab) needBound() {
	l.Helper()
	if l.level != tool.IsolationFull && os.Geteuid() == 0 && !l.hasMechanism("pids:cgroup") {
		l.Skip("nothing bounds root without a control group")
	}
}

// descriptors counts those of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(fds)
}
