package sandbox

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/tool"
)

// exit says how the run ended. It is the only place that decides so.
func (c *coldRun) exit(state *os.ProcessState) (*Exit, error) {
	if c.failed != nil {
		return notStarted(c.spec, c.failed)
	}
	e := &Exit{Duration: c.duration()}
	e.Usage.CPUMS = milliseconds(state.UserTime() + state.SystemTime())
	switch {
	case c.exited != nil:
		e.setStatus(syscall.WaitStatus(c.exited.Status))
		e.TimedOut = c.timedOut && c.exited.Killed
		e.Usage.CPUMS = milliseconds(c.exited.CPU)
		e.Usage.MaxRSSBytes = c.exited.MaxRSS
	case c.killed:
		e.Code, e.Signal, e.TimedOut = 128+int(unix.SIGKILL), "SIGKILL", c.timedOut
	default:
		// Nobody but the tool could have ended its supervisor.
		e.Code, e.Signal = 128+int(unix.SIGKILL), "SIGKILL"
		e.Hit, e.HitName = tool.SandboxViolation, "the supervisor of the sandbox was ended"
	}
	return e, nil
}

func (e *Exit) setStatus(ws syscall.WaitStatus) {
	if !ws.Signaled() {
		e.Code = ws.ExitStatus()
		return
	}
	e.Code, e.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
}

// notStarted turns what the shim could not do into what the planner reads, or
// into a fault of the machine.
func notStarted(s *Spec, r *frame.Report) (*Exit, error) {
	errno := syscall.Errno(r.Errno)
	if r.Step != launch.StepExec || len(s.Argv) == 0 {
		if errno != 0 {
			return nil, fmt.Errorf("sandbox: %s: %w", r.Step, errno)
		}
		return nil, fmt.Errorf("sandbox: %s", r.Step)
	}
	why := errno.Error()
	if errno == syscall.ENOENT {
		why = "command not found"
	}
	return &Exit{Code: -1, StartError: s.Argv[0] + ": " + why}, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
