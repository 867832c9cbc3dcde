package warm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/python"
)

var program = sync.OnceValues(func() (*python.Program, error) {
	i, err := python.Resolve(context.Background(), "python3")
	if err != nil {
		return nil, err
	}
	return i.Server(context.Background(), Source)
})

// bare is a server's process without a supervisor.
type bare struct{ *os.Process }

func (b bare) Kill() { _ = b.Process.Kill() }

func (b bare) Wait() (unix.WaitStatus, error) {
	st, err := b.Process.Wait()
	if err != nil {
		return 0, err
	}
	return unix.WaitStatus(st.Sys().(interface{ ExitStatus() int }).ExitStatus() << 8), nil
}

// startBare starts a server at level none.
func startBare(t testing.TB, change func(*Settings)) (*Server, error) {
	t.Helper()
	p, err := program()
	if err != nil {
		t.Fatal(err)
	}
	settings := &Settings{Dir: t.TempDir(), UID: -1, GID: -1, Preload: []string{"json", "random", "no_such_module"}}
	if change != nil {
		change(settings)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := Start(ctx, func(files []*os.File) (Process, error) {
		proc, err := os.StartProcess(p.Argv[0], p.Argv, &os.ProcAttr{Dir: "/", Env: []string{"PATH=/usr/bin:/bin", "SET=1"}, Files: files})
		return bare{proc}, err
	}, p.Prologue, settings)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

func mustStart(t testing.TB, change func(*Settings)) *Server {
	t.Helper()
	s, err := startBare(t, change)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outcome is what a run left behind.
type outcome struct {
	output, value, reason string
	report                *Report
}

// run runs code on a server.
func run(ctx context.Context, t testing.TB, s *Server, code string) (outcome, error) {
	t.Helper()
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	valueRead, valueWrite, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer outRead.Close()
	defer valueRead.Close()
	r := &python.Request{Name: "tool", Code: []byte(code), Input: []byte(`{"n": 1}`)}
	frame, err := r.Frame()
	if err != nil {
		t.Fatal(err)
	}
	err = s.Send(&Job{Frame: frame, Output: outWrite, Value: valueWrite})
	outWrite.Close()
	valueWrite.Close()
	if err != nil {
		return outcome{}, err
	}
	var o outcome
	var output bytes.Buffer
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = io.Copy(&output, outRead) })
	wg.Go(func() {
		value, reason, err := python.ReadValue(valueRead, 0)
		if err != nil {
			t.Error(err)
		}
		o.value, o.reason = string(value), reason
	})
	o.report, err = s.Wait(ctx)
	wg.Wait()
	o.output = output.String()
	return o, err
}

func mustRun(t testing.TB, s *Server, code string) outcome {
	t.Helper()
	o, err := run(context.Background(), t, s, code)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !o.report.Started || o.report.Cancelled {
		t.Fatalf("report %+v", o.report)
	}
	return o
}

func TestRuns(t *testing.T) {
	s := mustStart(t, nil)
	long := "x = '" + strings.Repeat("y", 1<<20) + "'\nprint(len(x))"
	for _, c := range []struct {
		code, output, value string
		exit                int
	}{
		{"print(6*7)", "42\n", "", 0},
		{"result = input_data", "", `{"n":1}`, 0},
		{"raise SystemExit(300)", "", "", 44},
		{"import os; os._exit(98)", "", "", 98},
		{"1/0", "Traceback (most recent call last):\n  File \"<tool>\", line 1, in <module>\n    1/0\n    ~^~\nZeroDivisionError: division by zero\n", "", 1},
		{long, "1048576\n", "", 0},
		{"import sys, os\nprint(sys.argv, __name__, os.environ['SET'], sys.stdin.read() == '')", "['tool'] __main__ 1 True\n", "", 0},
		{"import os\nprint(sorted(map(int, os.listdir('/proc/self/fd'))))", "[0, 1, 2, 3, 4]\n", "", 0},
		{"print(6*7)", "42\n", "", 0},
	} {
		o := mustRun(t, s, c.code)
		if ws := unix.WaitStatus(o.report.Status); !ws.Exited() || ws.ExitStatus() != c.exit {
			t.Errorf("%.100q: status %#x, want exit %d", c.code, o.report.Status, c.exit)
		}
		if o.output != c.output || o.value != c.value {
			t.Errorf("%.100q: %+v, want %+v", c.code, o, c)
		}
		if (c.exit == 0) != (o.report.Tasks == 0) {
			t.Errorf("%.100q: %d tasks", c.code, o.report.Tasks)
		}
		if o.report.MaxRSS < 1<<20 {
			t.Errorf("%.100q: %d bytes of memory", c.code, o.report.MaxRSS)
		}
	}
}

func TestSignals(t *testing.T) {
	s := mustStart(t, nil)
	o := mustRun(t, s, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
	if ws := unix.WaitStatus(o.report.Status); !ws.Signaled() || ws.Signal() != unix.SIGSEGV {
		t.Errorf("status %#x", o.report.Status)
	}
	mustRun(t, s, "pass")
}

// CASES 1, 2, 26 at the level without namespaces.
func TestNothingSurvives(t *testing.T) {
	s := mustStart(t, nil)
	mark := "1000." + fmt.Sprint(time.Now().UnixNano())
	o := mustRun(t, s, `
import os, signal, sys
for n in range(3):
    if os.fork() == 0:
        for s in range(1, 65):
            try: signal.signal(s, signal.SIG_IGN)
            except (OSError, ValueError): pass
        os.setsid()
        if os.fork() == 0:
            os.execv('/bin/sleep', ['sleep', '`+mark+`'])
        os._exit(0)
print('out')`)
	if o.output != "out\n" {
		t.Errorf("output %q", o.output)
	}
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		if b, _ := os.ReadFile("/proc/" + p.Name() + "/cmdline"); strings.Contains(string(b), mark) {
			t.Errorf("process %s survived: %q", p.Name(), b)
		}
	}
}

func TestNothingIsCarriedOver(t *testing.T) {
	s := mustStart(t, nil)
	const look = `
import builtins, os, random, resource, signal, sys, threading
print(os.getcwd() == start, os.environ.get('LEFT'), os.umask(0o22) == 0o22, 'left' in dir(builtins), 'left' in sys.modules,
  signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getsignal(signal.SIGUSR1), resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 50,
  threading.active_count(), globals().get('left'), sys.getrecursionlimit(), os.path.exists('/proc/self/fd/77'))`
	want := mustRun(t, s, "import os; start = os.getcwd()"+look).output
	first := mustRun(t, s, "import random; print(random.random())").output
	mustRun(t, s, `
import builtins, os, random, resource, signal, sys
left = 1
os.chdir('/'); os.environ['LEFT'] = '1'; os.umask(0); builtins.left = 1; sys.modules['left'] = sys
signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals()); signal.signal(signal.SIGUSR1, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50)); sys.setrecursionlimit(99); os.dup2(1, 77); random.seed(1)`)
	if got := mustRun(t, s, "import os; start = os.getcwd()"+look).output; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if again := mustRun(t, s, "import random; print(random.random())").output; again == first {
		t.Errorf("two runs drew the same number %s", again)
	}
}

func TestCancel(t *testing.T) {
	s := mustStart(t, nil)
	for _, code := range []string{
		"import time; time.sleep(1000)",
		"while True: pass",
		"import os, signal\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nwhile os.fork() or True: os.close(1) if 0 else signal.pause()",
		"import os, time; os.close(1); os.close(2); time.sleep(1000)", // CASES 3
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		o, err := run(ctx, t, s, code)
		cancel()
		if err != nil || !o.report.Cancelled || unix.WaitStatus(o.report.Status).Signal() != unix.SIGKILL {
			t.Fatalf("%q: %+v, %v", code, o.report, err)
		}
	}
	mustRun(t, s, "pass")
}

// A cancellation that comes when its run is over hits no later one.
func TestLateCancel(t *testing.T) {
	s := mustStart(t, nil)
	for range 20 {
		mustRun(t, s, "pass")
		s.order() // of the run that has just ended
		if o := mustRun(t, s, "print(1)"); o.output != "1\n" {
			t.Errorf("got %+v", o)
		}
	}
}

func TestLost(t *testing.T) {
	s := mustStart(t, nil)
	_, err := run(context.Background(), t, s, "import os, signal; os.kill(os.getppid(), signal.SIGKILL); os._exit(0)")
	if !errors.Is(err, ErrLost) {
		t.Errorf("got %v", err)
	}
	if _, err := run(context.Background(), t, s, "pass"); !errors.Is(err, ErrNotStarted) {
		t.Errorf("after the end: %v", err)
	}
}

// What cannot be set up is said at the start, and not repeated.
func TestSetupFails(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"/no/such/directory": func(s *Settings) { s.Dir = "/no/such/directory" },
		"filter":             func(s *Settings) { s.DropCaps, s.Filter = true, Program{1, 2, 3, 4, 5, 6, 7, 8} },
		"make Landlock":      func(s *Settings) { s.Landlock = &landlock.Plan{FS: 1 << 63} },
	} {
		if _, err := startBare(t, change); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "set-up") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What fails later is not repeated either.
func TestSetupFailsLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s := mustStart(t, func(s *Settings) { s.Dir = dir })
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	mustRun(t, s, "pass") // was set up before
	if _, err := run(context.Background(), t, s, "pass"); !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("got %v", err)
	}
}

// leaver is a server that has closed its socket and is about to end by itself.
type leaver struct{ killed atomic.Bool }

func (l *leaver) Kill() { l.killed.Store(true) }

func (l *leaver) Wait() (unix.WaitStatus, error) {
	if l.killed.Load() {
		return unix.WaitStatus(unix.SIGKILL), nil
	}
	return setupFailed << 8, nil
}

// A server that gives up before it takes a run is asked why before it is
// killed: the run is not to be blamed for it.
func TestWhyAServerLeftIsHeard(t *testing.T) {
	p, err := newPlumbing()
	if err != nil {
		t.Fatal(err)
	}
	defer p.initial.Close()
	s := &Server{process: &leaver{}, control: p.control, cancel: p.cancel, trouble: listen(p.complaints)}
	s.shutdown = sync.OnceValues(s.end)
	p.closeTheirs()
	if _, err := s.Wait(t.Context()); !errors.Is(err, ErrNotStarted) {
		t.Errorf("got %v", err)
	}
}

func TestTasks(t *testing.T) {
	s := mustStart(t, nil)
	o := mustRun(t, s, `
import os, signal, threading
for n in range(5):
    if os.fork() == 0:
        for m in range(3): threading.Thread(target=signal.pause, daemon=True).start()
        signal.pause()
os._exit(1)`)
	if o.report.Tasks < 6 || o.report.Tasks > 21 {
		t.Errorf("%d tasks, want one and five, each with at most three threads", o.report.Tasks)
	}
}

func TestLimits(t *testing.T) {
	s := mustStart(t, func(s *Settings) { s.MemoryBytes, s.PIDs, s.Uncounted = 500<<20, 20, true })
	o := mustRun(t, s, "import time; b = bytearray(600 << 20); time.sleep(1000)")
	if !o.report.OutOfMemory || o.report.TooManyProcesses {
		t.Errorf("report %+v", o.report)
	}
	o = mustRun(t, s, "import os, signal\nfor n in range(30):\n  if os.fork() == 0: signal.pause()\nsignal.pause()")
	if o.report.OutOfMemory || !o.report.TooManyProcesses {
		t.Errorf("report %+v", o.report)
	}
	mustRun(t, s, "import time; time.sleep(0.05)")
}

func FuzzReport(f *testing.F) {
	f.Add(make([]byte, reportSize))
	f.Add([]byte("ready"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReport(b)
		if err == nil && (r.CPU < 0 || r.CPU > maxCPU || r.MaxRSS < 0 || r.MaxRSS > maxMemory || r.Tasks < 0 || len(b) != reportSize) {
			t.Fatalf("%x: %+v", b, r)
		}
	})
}

func BenchmarkServer(b *testing.B) {
	s := mustStart(b, nil)
	for b.Loop() {
		mustRun(b, s, "print(6*7)")
	}
}
