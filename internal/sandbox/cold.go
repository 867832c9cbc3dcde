package sandbox

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/shim"
)

// runCold starts a supervisor for s alone and ends with it.
func (r *runner) runCold(ctx context.Context, s *Spec) (*Exit, error) {
	streams, err := newStreams(s, r.interpreter)
	if err != nil {
		return nil, err
	}
	sup, err := r.startSupervisor(streams.tool, &syscall.SysProcAttr{})
	if err != nil {
		streams.closeTool()
		streams.abandon()
		return nil, err
	}
	run := &coldRun{spec: s, sup: sup}
	if err := frame.WriteSetup(sup.control, r.setup(s, len(streams.tool))); err != nil {
		run.fault = fmt.Errorf("send set-up to sandbox supervisor: %w", err)
		sup.kill()
	}
	streams.closeTool()
	run.watch(ctx)
	state, err := sup.end()
	value, reason := streams.finish()
	if err := errors.Join(run.fault, err); err != nil {
		return nil, err
	}
	exit, err := run.exit(state)
	if err != nil {
		return nil, err
	}
	exit.Value, exit.ValueError = value, reason
	exit.Sandbox = r.metadata
	return exit, nil
}

// setup is what the shim is told.
func (r *runner) setup(s *Spec, files int) *shim.Setup {
	return &shim.Setup{
		Argv: r.argv(s), Env: s.Env, Dir: s.Root, Files: files,
		UID: -1, GID: -1,
		OOMFirst: true,
		Limits:   launch.Limits(s.Limits),
	}
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
	fault    error
	started  time.Time
	ended    time.Time
	failed   *frame.Report
	exited   *frame.Report
	timedOut bool
	killed   bool // by us
}

// watch follows the run until its tree is dead or about to be: it returns
// when the shim has said its last word.
func (c *coldRun) watch(ctx context.Context) {
	timer := time.NewTimer(setupTimeout)
	defer timer.Stop()
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
				c.started = time.Now()
				timer.Stop()
				if t := c.spec.Limits.Timeout(); t > 0 {
					timer.Reset(t)
				}
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

func (c *coldRun) kill() {
	c.killed = true
	c.sup.kill()
}

// duration is how long the tool ran.
func (c *coldRun) duration() time.Duration {
	if c.started.IsZero() {
		return 0
	}
	return c.ended.Sub(c.started)
}
