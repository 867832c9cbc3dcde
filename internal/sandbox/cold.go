package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/tool"
)

// runCold starts a supervisor for s alone, at a level, and ends with it.
func (r *runner) runCold(ctx context.Context, s *Spec, level tool.Isolation) (*Exit, error) {
	streams, err := newStreams(s, r.interpreter)
	if err != nil {
		return nil, err
	}
	c, err := r.confine(s, level, len(streams.tool))
	if err != nil {
		streams.closeTool()
		streams.abandon()
		return nil, err
	}
	defer c.release()
	sup, err := r.startSupervisor(append(slices.Clone(streams.tool), c.files...), c.attr)
	c.started()
	streams.closeTool()
	if err != nil {
		streams.abandon()
		return nil, err
	}
	run := &coldRun{spec: s, sup: sup, group: c.group}
	if err := frame.WriteSetup(sup.control, c.setup); err != nil {
		run.fault = fmt.Errorf("send set-up to sandbox supervisor: %w", err)
		sup.kill()
	}
	run.watch(ctx)
	return run.finish(c, streams)
}

// argv is the command line of s.
func (r *runner) argv(s *Spec) []string {
	if len(s.Argv) == 0 {
		return r.interpreter.Cold.Argv
	}
	if s.Argv[0] == "python3" {
		return append([]string{r.interpreter.Path}, s.Argv[1:]...)
	}
	return s.Argv
}

// coldRun is what is known of one run while it lasts.
type coldRun struct {
	spec     *Spec
	sup      *supervisor
	group    *cgroup.Group
	cpu      cpuWatch
	fault    error
	started  time.Time
	ended    time.Time
	failed   *frame.Report
	exited   *frame.Report
	timedOut bool
	killed   bool // by us
	noProc   bool
	// ready: the process waited for the run; idleCPU is what it had used by then.
	ready   bool
	idleCPU time.Duration
}

// watch follows the run until its tree is dead or about to be: it returns
// when the shim has said its last word.
func (c *coldRun) watch(ctx context.Context) {
	timer := time.NewTimer(setupTimeout)
	defer timer.Stop()
	if c.ready {
		c.begin(timer)
	}
	cancelled := ctx.Done()
	for {
		select {
		case rep, ok := <-c.sup.reports:
			if !ok {
				c.ended = time.Now()
				return
			}
			switch rep.Kind {
			case frame.Started:
				c.noProc = rep.NoProc
				c.begin(timer)
			case frame.Failed:
				c.failed = rep
			case frame.Exited:
				c.exited, c.ended = rep, time.Now()
				return
			}
		case <-timer.C:
			if c.started.IsZero() {
				c.fault = fmt.Errorf("sandbox was not ready after %s", setupTimeout)
			} else {
				c.timedOut = true
			}
			c.kill()
		case <-cancelled:
			cancelled = nil
			c.kill()
		}
	}
}

// begin starts the clocks of the limits.
func (c *coldRun) begin(timer *time.Timer) {
	c.started = time.Now()
	timer.Stop()
	c.cpu.start(c.group, c.spec.Limits, c.sup.kill)
	if t := c.spec.Limits.Timeout(); t > 0 {
		timer.Reset(t)
	}
}

// finish waits until everything is dead and says how the run ended.
func (c *coldRun) finish(conf *confinement, streams *streams) (*Exit, error) {
	c.cpu.stop()
	var state *os.ProcessState
	var err error
	if c.exited != nil && !c.sup.init {
		conf.tidied = true
		c.sup.leave()
	} else if state, err = c.sup.end(); !c.sup.init {
		c.group.Kill() // who ended its supervisor is not spared for it
	}
	value, reason := streams.finish()
	if err := errors.Join(c.fault, err); err != nil {
		return nil, err
	}
	exit, err := c.exit(state)
	if err != nil {
		return nil, err
	}
	exit.Value, exit.ValueError = value, reason
	exit.believe(streams.limit)
	if conf.metadata.Isolation == tool.IsolationFull {
		conf.mechanism(!c.noProc, "proc")
	}
	exit.Sandbox = conf.metadata
	return exit, nil
}

func (c *coldRun) kill() {
	c.killed = true
	if !c.sup.init {
		c.group.Kill()
	}
	c.sup.kill()
}

// duration is how long the tool ran.
func (c *coldRun) duration() time.Duration {
	if c.started.IsZero() {
		return 0
	}
	return c.ended.Sub(c.started)
}
