package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/tool"
)

// exit says how the run ended. It is the only place that decides so.
func (c *coldRun) exit(state *os.ProcessState) (*Exit, error) {
	if c.failed != nil {
		return notStarted(c.spec, c.failed)
	}
	stats := c.group.Stats()
	e := &Exit{Warm: c.ready, Duration: c.duration(), Code: 128 + int(unix.SIGKILL), Signal: "SIGKILL"}
	rep := c.exited
	if rep == nil {
		// Killed with its tree; what is known is what the kernel kept.
		rep = &frame.Report{Kind: frame.Failed, Killed: c.killed, CPU: state.UserTime() + state.SystemTime()}
	} else {
		e.setStatus(syscall.WaitStatus(rep.Status))
	}
	// A control group's kill can be over before the shim has read its order.
	e.TimedOut = c.timedOut && (rep.Killed || e.Signal == "SIGKILL")
	e.Usage = tool.Usage{
		CPUMS:       milliseconds(max(0, cmp.Or(stats.CPU, rep.CPU)-c.idleCPU)),
		MaxRSSBytes: cmp.Or(stats.MemoryPeak, rep.MemoryPeak, rep.MaxRSS),
		PIDsPeak:    cmp.Or(stats.PIDsPeak, rep.PIDsPeak),
	}
	if !c.killed || c.cpu.exceeded.Load() {
		e.Hit, e.HitName = hit(e, c.spec.Limits, rep, stats, c.cpu.exceeded.Load())
	}
	return e, nil
}

// hit names the limit that a failed run ran into, if it did. A report that is
// not of the kind Exited stands for a supervisor that gave none.
func hit(e *Exit, limits tool.Limits, rep *frame.Report, stats cgroup.Stats, cpuExceeded bool) (tool.Code, string) {
	usedUp := limits.CPUSeconds > 0 && e.Usage.CPUMS >= 1000*limits.CPUSeconds
	switch {
	case e.Code == 0:
		return "", ""
	case stats.OOMKills > 0 || rep.OutOfMemory:
		return tool.OutOfMemory, "memory_bytes"
	case e.Signal == "SIGXCPU", cpuExceeded, e.Signal == "SIGKILL" && usedUp:
		return tool.LimitExceeded, "cpu_seconds"
	case e.Signal == "SIGXFSZ":
		return tool.LimitExceeded, "file_size_bytes"
	case e.Signal == "SIGSYS":
		return tool.SandboxViolation, "a system call of a foreign architecture"
	case stats.PIDsHits > 0 || rep.TooManyProcesses:
		return tool.TooManyProcesses, "pids"
	case rep.Kind != frame.Exited:
		// Nobody but the tool could have ended its supervisor.
		return tool.SandboxViolation, "the supervisor of the sandbox was ended"
	}
	return "", ""
}

// believe takes the code's word for a limit of which the kernel keeps no count:
// it failed, and the exception that ended it says why. Who lies here only
// changes the name of his own failure.
func (e *Exit) believe(limit string) {
	if limit == "" || e.Code == 0 || e.Signal != "" || e.Hit != "" {
		return
	}
	e.HitName = limit
	switch limit {
	case "memory_bytes":
		e.Hit = tool.OutOfMemory
	case "pids":
		e.Hit = tool.TooManyProcesses
	default:
		e.Hit = tool.LimitExceeded
	}
}

func (e *Exit) setStatus(ws syscall.WaitStatus) {
	if !ws.Signaled() {
		e.Code, e.Signal = ws.ExitStatus(), ""
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
