package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/removal"
	"github.com/toolworker/toolworker/internal/tool"
)

// stepDirectory is the step of a launch that enters the working directory.
const stepDirectory = "change directory"

const (
	// spareSlots may stay idle for as long as the agent lives, others for slotIdle.
	spareSlots = 2
	slotIdle   = 30 * time.Second
)

// commands runs the commands of a session in slots. It is a sandbox.Runner
// for specs that have an Argv.
type commands struct {
	executable string
	metadata   tool.SandboxMetadata
	landlock   bool
	tmp        string // where each run gets a directory for temporary files, "" when there is no room
	counters   *counters

	mu     sync.Mutex
	idle   []*slot // the one used last is the last
	closed bool
}

func newCommands(executable string) *commands {
	c := &commands{executable: executable, landlock: landlock.ABI() > 0, counters: findCounters()}
	c.metadata = c.describe()
	if dir, err := os.MkdirTemp("", "toolworker-"); err == nil {
		c.tmp = dir
	}
	return c
}

// describe says how commands are confined: at level reduced, or at level none
// on a kernel that lacks what that takes.
func (c *commands) describe() tool.SandboxMetadata {
	m := tool.SandboxMetadata{Isolation: tool.IsolationReduced, Mechanisms: []string{"no_new_privs", "rlimits", "subreaper"}, Missing: []string{}}
	have := func(ok bool, name string) {
		if ok {
			m.Mechanisms = append(m.Mechanisms, name)
		} else {
			m.Missing = append(m.Missing, name)
			m.Isolation = tool.IsolationNone
		}
	}
	have(c.landlock, "landlock")
	have((&confinement{}).filter() != nil, "seccomp")
	// Commands keep the rights that the container gives its user: they may
	// need them to write to a project of another owner.
	if hasCapabilities() {
		m.Missing = append(m.Missing, "capabilities")
	} else {
		m.Mechanisms = append(m.Mechanisms, "capabilities")
	}
	return m
}

// hasCapabilities reports whether this process has any.
func hasCapabilities() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return true
	}
	return data[0].Effective|data[1].Effective|data[0].Permitted|data[1].Permitted != 0
}

// Run implements sandbox.Runner.
func (c *commands) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	if !c.metadata.Isolation.AtLeast(s.Least) {
		return &sandbox.Exit{Code: -1, StartError: fmt.Sprintf("isolation %q is demanded, this container has %q", s.Least, c.metadata.Isolation)}, nil
	}
	sl, err := c.take()
	if err != nil {
		return nil, err
	}
	job := c.job(s, sl)
	st, err := openStdio(s)
	if err != nil {
		c.give(sl)
		return nil, err
	}
	err = sl.start(job, st.tool())
	st.closeTool()
	if err != nil {
		st.finish()
		sl.end()
		return nil, err
	}
	started := time.Now()
	x, timedOut, killed, err := await(ctx, sl, s.Limits.Timeout())
	duration := time.Since(started)
	st.finish()
	if err != nil {
		sl.end()
		if killed {
			return &sandbox.Exit{Code: 137, Signal: "SIGKILL", TimedOut: timedOut, Duration: duration, Sandbox: c.metadata}, nil
		}
		return &sandbox.Exit{
			Code: 137, Signal: "SIGKILL", Hit: tool.SandboxViolation, HitName: "its supervisor was ended",
			Duration: duration, Sandbox: c.metadata,
		}, nil
	}
	c.give(sl)
	exit, err := exitOf(s, x)
	if err != nil {
		return nil, err
	}
	exit.Duration, exit.TimedOut, exit.Sandbox = duration, timedOut, c.metadata
	if exit.Hit == "" && exit.Code != 0 && !timedOut {
		exit.Hit, exit.HitName = c.counters.hit(exit, s.Limits)
	}
	return exit, nil
}

// await waits for the end of what the slot runs, and brings it about when ctx
// is over or the time is up.
func await(ctx context.Context, sl *slot, timeout time.Duration) (x *slotExit, timedOut, killed bool, err error) {
	type ending struct {
		x   *slotExit
		err error
	}
	ended := make(chan ending, 1)
	go func() {
		x, err := sl.wait()
		ended <- ending{x, err}
	}()
	var late <-chan time.Time
	if timeout > 0 {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		late = timer.C
	}
	cancelled := ctx.Done()
	for {
		select {
		case e := <-ended:
			return e.x, timedOut, killed, e.err
		case <-late:
			timedOut, killed = true, true
			sl.kill()
		case <-cancelled:
			cancelled, killed = nil, true
			sl.kill()
		}
	}
}

// job is what the slot is told.
func (c *commands) job(s *sandbox.Spec, sl *slot) *slotJob {
	j := &slotJob{
		Argv: s.Argv, Env: s.Env, Dir: s.Root, Limits: launch.Limits(s.Limits, false), PIDs: s.Limits.PIDs,
		Confine: confinement{Landlock: c.landlock, Read: s.ReadOnly, Writable: s.Writable, Network: s.Network},
	}
	if s.Limits.MemoryBytes > 0 {
		// What a process may write to, not what it reserves: runtimes reserve
		// far more than they use.
		n := uint64(s.Limits.MemoryBytes)
		j.Limits = append(j.Limits, launch.Limit{Resource: unix.RLIMIT_DATA, Soft: n, Hard: n})
	}
	if s.Writable {
		j.Confine.Write = append(j.Confine.Write, s.Root)
	}
	if sl.tmp != "" {
		j.Confine.Write = append(j.Confine.Write, sl.tmp)
		j.Env = append([]string{"TMPDIR=" + sl.tmp}, j.Env...)
	}
	return j
}

// exitOf says how a command ended. It is the only place that decides so.
func exitOf(s *sandbox.Spec, x *slotExit) (*sandbox.Exit, error) {
	if x.Step != "" {
		errno := syscall.Errno(x.Errno)
		switch {
		case x.Step == stepDirectory:
			return &sandbox.Exit{Code: -1, StartError: fmt.Sprintf("working directory %s: %v", s.Root, errno)}, nil
		case x.Step != launch.StepExec && x.Errno != 0:
			return nil, fmt.Errorf("start command: %s: %w", x.Step, errno)
		case x.Step != launch.StepExec:
			return &sandbox.Exit{Code: -1, StartError: x.Step}, nil
		case errors.Is(errno, os.ErrNotExist):
			return &sandbox.Exit{Code: -1, StartError: s.Argv[0] + ": command not found"}, nil
		}
		return &sandbox.Exit{Code: -1, StartError: s.Argv[0] + ": " + errno.Error()}, nil
	}
	e := &sandbox.Exit{Hit: x.Hit}
	if e.Hit != "" {
		e.HitName = fmt.Sprintf("%d processes", s.Limits.PIDs)
	}
	e.Usage = tool.Usage{CPUMS: float64(x.CPUNS) / 1e6, MaxRSSBytes: x.MaxRSS, PIDsPeak: x.PIDs}
	status := syscall.WaitStatus(x.Status)
	if !status.Signaled() {
		e.Code = status.ExitStatus()
		return e, nil
	}
	e.Code, e.Signal = 128+int(status.Signal()), unix.SignalName(status.Signal())
	switch status.Signal() {
	case unix.SIGSYS:
		e.Hit, e.HitName = tool.SandboxViolation, "a forbidden system call"
	case unix.SIGXCPU:
		e.Hit, e.HitName = tool.LimitExceeded, "cpu_seconds"
	case unix.SIGXFSZ:
		e.Hit, e.HitName = tool.LimitExceeded, "file_size_bytes"
	}
	return e, nil
}

// take gives an idle slot or starts one.
func (c *commands) take() (*slot, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, sandbox.ErrClosed
	}
	if n := len(c.idle); n > 0 {
		sl := c.idle[n-1]
		c.idle = c.idle[:n-1]
		c.mu.Unlock()
		return sl, nil
	}
	c.mu.Unlock()
	sl, err := startSlot(c.executable)
	if err == nil && c.tmp != "" {
		sl.tmp, _ = os.MkdirTemp(c.tmp, "run-") // "" when there is no room
	}
	return sl, err
}

// give takes a slot back, and ends those that nobody has needed for long.
func (c *commands) give(sl *slot) {
	sl.idle = time.Now()
	sl.clean()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go sl.end()
		return
	}
	c.idle = append(c.idle, sl)
	for len(c.idle) > spareSlots && time.Since(c.idle[0].idle) > slotIdle {
		go c.idle[0].end()
		c.idle = c.idle[1:]
	}
}

// Close implements sandbox.Runner.
func (c *commands) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle, c.closed = nil, true
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, sl := range idle {
		wg.Go(sl.end)
	}
	wg.Wait()
	if c.tmp != "" {
		removal.Tree(c.tmp)
	}
	return nil
}
