package exectest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/tool"
)

// patience is how long after its timeout or cancellation a run may take to
// end on a machine that is busy with other tests.
const patience = 10 * time.Second

// stubborn are tools that do not want to end.
var stubborn = []struct {
	name, source string
	processes    bool // it starts some
}{
	{"sleeps", "import time; time.sleep(600)", false},
	{"case 2: ignores every signal in an endless loop", `
import signal
for s in signal.valid_signals():
    try: signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError): pass
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
while True: pass
`, false},
	{"case 3: closes its output and sleeps", "import os, time; os.close(0); os.close(1); os.close(2); time.sleep(600)", false},
	{"case 9: holds the interpreter's lock in a long call", "pow(10, 10**10)", false},
	{"case 1: leaves a grandchild in another session, and waits", `
import time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(60)
    os._exit(0)
time.sleep(600)
`, true},
	{"stops itself", "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", false},
	{"forks a chain of twenty, each in its own session", `
import time
for i in range(20):
    if os.fork() != 0: break
    os.setsid()
while True: time.sleep(60)
`, true},
}

var stopping = []test{
	{"a timeout ends the whole tree", func(t *testing.T, s *Subject) {
		s.eachStubborn(t, func(t *testing.T, task *exec.Task) {
			task.Limits.TimeoutSeconds = 0.5
			begin := time.Now()
			e := s.run(t, task)
			if !e.TimedOut || e.StartError != "" {
				t.Errorf("%s", e)
			}
			if took := time.Since(begin); took < 500*time.Millisecond || took > patience {
				t.Errorf("took %s", took)
			}
		})
	}},
	{"a cancellation ends the whole tree", func(t *testing.T, s *Subject) {
		s.eachStubborn(t, func(t *testing.T, task *exec.Task) {
			s.stop(t, task, tool.ErrCancelled)
		})
	}},
	{"a drain ends the whole tree", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			t.Run(form, func(t *testing.T) { s.stop(t, make(holdLock+"import time; time.sleep(600)"), tool.ErrDrained) })
		}
	}},
	{"cancelled before it began", func(t *testing.T, s *Subject) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(tool.ErrCancelled)
		task := s.command("true")
		ending, err := s.Backend.Run(ctx, task)
		s.noSurvivors(t, task)
		if err != nil {
			return // an interrupted backend may say so
		}
		if e := read(t, ending); e.Signal != "SIGKILL" && e.StartError == "" {
			t.Errorf("%s", e)
		}
	}},
	{"output before a timeout is kept", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("import time; print('before', flush=True); time.sleep(600)")
			task.Limits.TimeoutSeconds = 1
			if e := s.run(t, task); !e.TimedOut || e.all() != "before\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"one that ends in time is not timed out", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			task := make("print(1)")
			task.Limits.TimeoutSeconds = 20.5
			if e := s.run(t, task); e.TimedOut || e.ExitCode != 0 {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"many are stopped at once, and others are not", func(t *testing.T, s *Subject) {
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				task := s.code("import time; time.sleep(600)")
				ending, err := s.Backend.Run(ctx, task)
				if err == nil && ending.Signal != "SIGKILL" {
					t.Errorf("stopped: %s", read(t, ending))
				}
			})
			wg.Go(func() {
				e := s.runAmongOthers(t, s.code("import time; time.sleep(1); print('done')"))
				if e.ExitCode != 0 || !strings.Contains(e.combined, "done") {
					t.Errorf("not stopped: %s", e)
				}
			})
		}
		time.AfterFunc(500*time.Millisecond, func() { cancel(tool.ErrCancelled) })
		wg.Wait()
	}},
}

// eachStubborn calls f with every tool that does not want to end.
func (s *Subject) eachStubborn(t *testing.T, f func(t *testing.T, task *exec.Task)) {
	for _, tool := range stubborn {
		t.Run(tool.name, func(t *testing.T) {
			forms := s.forms()
			if tool.processes {
				forms = s.forking(t)
			}
			for form, make := range forms {
				t.Run(form, func(t *testing.T) { f(t, make(holdLock+tool.source)) })
			}
		})
	}
}

// stop runs a task that does not end by itself and cancels it for a cause.
func (s *Subject) stop(t *testing.T, task *exec.Task, cause error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	timer := time.AfterFunc(300*time.Millisecond, func() { cancel(cause) })
	defer timer.Stop()
	begin := time.Now()
	ending, err := s.Backend.Run(ctx, task)
	s.noSurvivors(t, task)
	if took := time.Since(begin); took > patience {
		t.Errorf("took %s", took)
	}
	if !errors.Is(context.Cause(ctx), cause) {
		t.Fatalf("it ended before it was stopped: %v, %v", ending, err)
	}
	if err != nil {
		return // an interrupted backend may say so
	}
	if e := read(t, ending); e.Signal != "SIGKILL" || e.TimedOut {
		t.Errorf("%s", e)
	}
}
