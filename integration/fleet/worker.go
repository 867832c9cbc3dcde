package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait; a loaded machine may need a good part of it.
const patience = 60 * time.Second

// Worker is one `worker run` process.
type Worker struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
	log  log
}

// StartWorker starts `worker run` with args. It does not wait for it to be
// ready. What it logged is shown when the test fails; the process ends with
// the test.
func StartWorker(t testing.TB, args ...string) *Worker {
	t.Helper()
	return StartWorkerIn(t, nil, args...)
}

// StartWorkerIn is StartWorker with more environment variables, "NAME=value".
func StartWorkerIn(t testing.TB, env []string, args ...string) *Worker {
	t.Helper()
	w := &Worker{t: t, done: make(chan struct{}), log: log{changed: make(chan struct{})}}
	w.cmd = exec.Command(Binary(t, "worker"), append([]string{"run", "--http-listen", "", "--log-format", "json"}, args...)...)
	w.cmd.Dir = t.TempDir()
	w.cmd.Stderr = &w.log
	w.cmd.Env = append(append(os.Environ(), "OTEL_SDK_DISABLED=true"), env...)
	if err := w.cmd.Start(); err != nil {
		t.Fatalf("start worker: %v", err)
	}
	go func() {
		_ = w.cmd.Wait()
		close(w.done)
		w.log.wake()
	}()
	t.Cleanup(func() {
		w.Kill()
		if t.Failed() {
			t.Logf("log of worker %v:\n%s", args, w.log.String())
		}
	})
	return w
}

// Ready waits until the worker serves and returns its "ready" line.
func (w *Worker) Ready() map[string]any {
	w.t.Helper()
	return w.Logged("ready", nil)
}

// Logged waits for a line with this message and these members.
func (w *Worker) Logged(msg string, members map[string]any) map[string]any {
	w.t.Helper()
	deadline := time.After(patience)
	for {
		ended := w.Ended() // asked first, so that its last line is seen
		lines, changed := w.matching(msg, members)
		switch {
		case len(lines) > 0:
			return lines[0]
		case ended:
			w.t.Fatalf("worker ended (%v) without logging %q %v", w.cmd.ProcessState, msg, members)
		}
		select {
		case <-changed:
		case <-deadline:
			w.t.Fatalf("worker did not log %q %v in %s", msg, members, patience)
		}
	}
}

// Count is how many lines have this message and these members.
func (w *Worker) Count(msg string, members map[string]any) int {
	lines, _ := w.matching(msg, members)
	return len(lines)
}

// matching are the lines with this message and these members, and a channel
// that is closed when there may be more.
func (w *Worker) matching(msg string, members map[string]any) (out []map[string]any, changed <-chan struct{}) {
	lines, changed := w.log.lines()
	for _, l := range lines {
		if l["msg"] == msg && holds(l, members) {
			out = append(out, l)
		}
	}
	return out, changed
}

func holds(line, members map[string]any) bool {
	for k, v := range members {
		if line[k] != v {
			return false
		}
	}
	return true
}

// Ended reports whether the process has ended.
func (w *Worker) Ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal.
func (w *Worker) Signal(s syscall.Signal) {
	w.t.Helper()
	if err := w.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		w.t.Fatalf("signal worker: %v", err)
	}
}

// Kill ends the process at once, as the kernel would under memory pressure.
func (w *Worker) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.done
}

// Drain sends SIGTERM, waits for the end and checks that it was an orderly one.
func (w *Worker) Drain() {
	w.t.Helper()
	w.Signal(syscall.SIGTERM)
	w.WaitExit(0)
}

// WaitExit waits for the process to end with this exit code.
func (w *Worker) WaitExit(code int) {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(patience):
		w.t.Fatalf("worker did not end in %s", patience)
	}
	if got := w.cmd.ProcessState.ExitCode(); got != code {
		w.t.Fatalf("worker ended with %d (%v), want %d", got, w.cmd.ProcessState, code)
	}
}

// Log is everything the worker wrote to stderr.
func (w *Worker) Log() string { return w.log.String() }

// log collects JSON lines and says when there are new ones.
type log struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf.Write(p)
	l.wakeLocked()
	return len(p), nil
}

func (l *log) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *log) wakeLocked() {
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *log) lines() ([]map[string]any, <-chan struct{}) {
	l.mu.Lock()
	text, changed := l.buf.String(), l.changed
	l.mu.Unlock()
	var out []map[string]any
	for line := range strings.Lines(text) {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil {
			out = append(out, m)
		} else {
			out = append(out, map[string]any{"msg": fmt.Sprintf("not JSON: %s", line)})
		}
	}
	return out, changed
}
