package shim

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/removal"
	"github.com/toolworker/toolworker/internal/sandbox/room"
	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
)

// A program that was executed under the name of the shim is one from here on
// and never gets to its main: what a worker links for its other work takes
// longer to initialise than a shim lives. This package imports little, so its
// turn comes early.
func init() {
	if len(os.Args) > 0 && os.Args[0] == Arg0 {
		run()
	}
}

// run is the life of a shim; it does not return.
func run() {
	ignoreSignals()
	control := os.NewFile(ControlFD, "control")
	var s Setup
	report, ok := s.serve(control)
	if report != nil {
		// A worker that does not listen any more needs no answer.
		_ = report.Write(control)
	}
	if s.Temporary != "" {
		removal.Tree(s.Temporary)
	}
	if !ok {
		os.Exit(1)
	}
	os.Exit(0)
}

func failed(step string, err error) (*frame.Report, bool) {
	r := &frame.Report{Kind: frame.Failed, Step: step}
	var errno syscall.Errno
	var start *launch.Error
	switch {
	case errors.As(err, &start):
		r.Step, r.Errno = start.Step, uint32(start.Errno)
	case errors.As(err, &errno):
		r.Step, r.Errno = step+": "+err.Error(), uint32(errno)
	default:
		r.Step = step + ": " + err.Error()
	}
	return r, false
}

// serve does what the worker asks and gives the last thing to say.
func (s *Setup) serve(control *os.File) (*frame.Report, bool) {
	// Whatever the worker was started with must not reach the tool.
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return failed("close descriptors", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return failed("hide from tracers", err)
	}
	if err := frame.ReadSetup(control, s); err != nil {
		return nil, false // the worker is gone, or is no worker
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return failed("become subreaper", err)
	}
	return s.run(control)
}

func (s *Setup) run(control *os.File) (*frame.Report, bool) {
	child := launch.Child{
		Argv: s.Argv, Env: s.Env, Dir: s.Dir,
		UID: s.UID, GID: s.GID, DropCaps: s.DropCaps, NoNewPrivs: s.NoNewPrivs,
		Ruleset: -1, Limits: s.Limits, OOMFirst: s.OOMFirst, Groups: s.Groups,
	}
	for i := range s.Files {
		child.Files = append(child.Files, FilesFD+i)
	}
	proc, err := openProc()
	if err != nil {
		return failed("look at processes", err)
	}
	started := frame.Report{Kind: frame.Started}
	if s.Room != nil {
		missing, err := s.Room.Build()
		if err != nil {
			return failed("build room", err)
		}
		started.NoProc = slices.Contains(missing, room.MissingProc)
		if proc.foreign = started.NoProc; !proc.foreign {
			proc.close()
			if proc, err = openProc(); err != nil {
				return failed("look at processes", err)
			}
		}
	}
	if s.Landlock != nil {
		ruleset, err := s.Landlock.Ruleset()
		if err != nil {
			return failed("confine to files", err)
		}
		child.Ruleset = ruleset
	}
	child.Filter = seccomp.Program(s.Filter)
	if s.PIDs > 0 {
		// The kernel counts the threads of the user, in a room of its own
		// those of this process included. Without one, others of the same
		// user come and go: then it only bounds what may happen between two
		// looks of the sampler.
		n := uint64(proc.tasksOf(s.user()) + s.PIDs)
		if s.Uncounted {
			n += uint64(3*s.PIDs) + 64
		}
		child.Limits = append(child.Limits, launch.Limit{Resource: unix.RLIMIT_NPROC, Soft: n, Hard: n})
	}
	pid, err := child.Start()
	if err != nil {
		return failed("start", err)
	}
	for _, fd := range slices.Concat(child.Files, child.Groups) {
		unix.Close(fd) // or the worker would never see the end of the output
	}
	main, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		proc.killTree()
		return failed("open process", err)
	}
	if err := started.Write(control); err != nil {
		proc.killTree()
		return nil, false
	}
	var killed atomic.Bool
	end := func() { _ = unix.PidfdSendSignal(main, unix.SIGKILL, nil, 0) }
	go func() {
		frame.ReadKill(control) // or the worker's death
		killed.Store(true)
		end()
	}()
	sampler := s.sample(proc)
	status := wait(pid)
	sampler.end()
	proc.killTree()
	r := &frame.Report{Kind: frame.Exited, Status: uint32(status), Killed: killed.Load()}
	r.CPU, r.MaxRSS = used()
	sampler.report(r)
	return r, true
}

// user is who the tool runs as.
func (s *Setup) user() int {
	if s.UID >= 0 {
		return s.UID
	}
	return os.Getuid()
}

// wait reaps until the main process has ended.
func wait(pid int) unix.WaitStatus {
	for {
		var ws unix.WaitStatus
		p, err := unix.Wait4(-1, &ws, 0, nil)
		switch {
		case err == nil && p == pid:
			return ws
		case err == unix.ECHILD: // cannot be: nobody else reaps
			return 0
		}
	}
}

// used is what all reaped descendants used: cpu time in sum, memory of the
// largest in bytes.
func used() (time.Duration, int64) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &ru); err != nil {
		return 0, 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), ru.Maxrss << 10
}
