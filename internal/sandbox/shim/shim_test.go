package shim

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
)

// worker is the other side of a shim under test.
type worker struct {
	*testing.T
	control *os.File
	in, out *os.File
	process *os.Process
}

func startShim(t *testing.T) *worker {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "theirs")
	defer theirs.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{Arg0}, &os.ProcAttr{Files: []*os.File{null, null, os.Stderr, theirs, stdin, w, w}})
	if err != nil {
		t.Fatal(err)
	}
	s := &worker{t, os.NewFile(uintptr(pair[0]), "ours"), in, r, p}
	t.Cleanup(func() {
		_ = s.control.Close()
		_ = s.in.Close()
		_ = s.out.Close()
		_ = p.Kill()
		_, _ = p.Wait()
	})
	return s
}

func (w *worker) setup(argv ...string) {
	w.Helper()
	if err := frame.WriteSetup(w.control, &Setup{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, Files: 3, UID: -1, GID: -1}); err != nil {
		w.Fatal(err)
	}
}

func (w *worker) wants(kind frame.Kind) *frame.Report {
	w.Helper()
	r, err := frame.ReadReport(w.control)
	if err != nil || r.Kind != kind {
		w.Fatalf("report %+v, %v, want %q", r, err, kind)
	}
	return r
}

// line waits for a line of the tool's output.
func (w *worker) line() string {
	w.Helper()
	var b [1]byte
	var line []byte
	for {
		if _, err := w.out.Read(b[:]); err != nil {
			w.Fatalf("after %q: %v", line, err)
		}
		if b[0] == '\n' {
			return string(line)
		}
		line = append(line, b[0])
	}
}

// ended waits until the shim has exited and no process of these is left.
func (w *worker) ended(pids ...string) {
	w.Helper()
	if _, err := w.process.Wait(); err != nil {
		w.Fatal(err)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err != nil {
			w.Fatal(err)
		}
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			w.Errorf("process %d is alive: %v", pid, err)
		}
	}
}

// family starts a process, its child and a grandchild with a session of its
// own, and says who they are.
const family = `setsid sh -c 'trap "" TERM HUP; echo $$; while :; do sleep 1000; done' & sh -c 'echo $$; sleep 1000' & echo $$; `

func TestTreeEndsWithItsMainProcess(t *testing.T) {
	w := startShim(t)
	w.setup("sh", "-c", family+"read x; exit 7")
	w.wants(frame.Started)
	pids := []string{w.line(), w.line(), w.line()}
	_ = w.in.Close() // the main process ends, the others do not
	r := w.wants(frame.Exited)
	if ws := unix.WaitStatus(r.Status); !ws.Exited() || ws.ExitStatus() != 7 || r.Killed {
		t.Errorf("report %+v", r)
	}
	w.ended(pids...)
	if rest, _ := io.ReadAll(w.out); len(rest) > 0 {
		t.Errorf("output %q after the end", rest)
	}
}

func TestTreeEndsByOrder(t *testing.T) {
	w := startShim(t)
	w.setup("sh", "-c", family+"wait")
	w.wants(frame.Started)
	pids := []string{w.line(), w.line(), w.line()}
	if err := frame.WriteKill(w.control); err != nil {
		t.Fatal(err)
	}
	r := w.wants(frame.Exited)
	if ws := unix.WaitStatus(r.Status); ws.Signal() != unix.SIGKILL || !r.Killed {
		t.Errorf("report %+v", r)
	}
	w.ended(pids...)
}

func TestTreeEndsWithItsWorker(t *testing.T) {
	w := startShim(t)
	w.setup("sh", "-c", family+"wait")
	w.wants(frame.Started)
	pids := []string{w.line(), w.line(), w.line()}
	_ = w.control.Close()
	w.ended(pids...)
}

func TestSignalsDoNotEndAShim(t *testing.T) {
	w := startShim(t)
	w.setup("sh", "-c", "echo started; exec sleep 1000")
	w.wants(frame.Started)
	w.line()
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1} {
		if err := w.process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := frame.WriteKill(w.control); err != nil {
		t.Fatal(err)
	}
	if r := w.wants(frame.Exited); !r.Killed {
		t.Errorf("report %+v", r)
	}
}

func TestWhatCannotBeStartedIsSaid(t *testing.T) {
	w := startShim(t)
	w.setup("no-such-program")
	if r := w.wants(frame.Failed); r.Step != "exec" || unix.Errno(r.Errno) != unix.ENOENT {
		t.Errorf("report %+v", r)
	}
	w.ended()
	w = startShim(t)
	w.setup("true", "a\x00b")
	if r := w.wants(frame.Failed); !strings.Contains(r.Step, "NUL") {
		t.Errorf("report %+v", r)
	}
}

func TestWorkerThatTalksNonsense(t *testing.T) {
	for _, said := range []string{"", "x", "\x00\x00\x00\x00K", "\x02\x00\x00\x00Sno"} {
		w := startShim(t)
		if _, err := w.control.WriteString(said); err != nil {
			t.Fatal(err)
		}
		if err := unix.Shutdown(int(w.control.Fd()), unix.SHUT_WR); err != nil {
			t.Fatal(err)
		}
		if r, err := frame.ReadReport(w.control); err == nil {
			t.Errorf("%q was answered: %+v", said, r)
		}
		w.ended()
	}
}

func TestLimitsOfTheSampler(t *testing.T) {
	w := startShim(t)
	setup := &Setup{
		Env: []string{"PATH=/usr/bin:/bin"}, Files: 3, UID: -1, GID: -1, PIDs: 8, Uncounted: true,
		Argv: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 1000 & done; wait"},
	}
	if err := frame.WriteSetup(w.control, setup); err != nil {
		t.Fatal(err)
	}
	w.wants(frame.Started)
	if r := w.wants(frame.Exited); !r.TooManyProcesses || r.OutOfMemory || r.PIDsPeak < 8 {
		t.Errorf("report %+v", r)
	}
}

func TestTreeSizeSeesDescendants(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 & sleep 1000 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	proc, err := openProc()
	if err != nil {
		t.Fatal(err)
	}
	defer proc.close()
	defer proc.killTree()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if bytes, tasks := proc.treeSize(); tasks != 3 || bytes < 100<<10 {
		t.Errorf("tree of %d tasks and %d bytes", tasks, bytes)
	}
	if a, b := proc.childrenOf("self"), proc.childrenByScan("self"); !slices.Contains(a, cmd.Process.Pid) || !slices.Equal(a, b) {
		t.Errorf("children %v, by scanning %v", a, b)
	}
	if n := proc.threads("self"); n < 2 {
		t.Errorf("a Go program has %d threads", n)
	}
	if n := proc.tasksOf(os.Getuid()); n < 5 {
		t.Errorf("the user has %d tasks", n)
	}
}

func TestFirstNumber(t *testing.T) {
	const status = "Name:\tx\nUid:\t1000\t0\t0\t0\nThreads:\t7\nBad:\tx\nEnd:"
	for line, want := range map[string]int64{"Uid:": 1000, "Threads:": 7, "Bad:": -1, "End:": -1, "Gid:": -1} {
		if got := firstNumber(status, line); got != want {
			t.Errorf("%s %d, want %d", line, got, want)
		}
	}
}

func TestShimWithoutAWorkerEnds(t *testing.T) {
	// A shim that waits for its set-up ends as soon as nobody can send it.
	w := startShim(t)
	_ = w.control.Close()
	done := make(chan struct{})
	go func() {
		w.ended()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("a shim without a worker is alive")
	}
}
