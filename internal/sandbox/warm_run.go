package sandbox

import (
	"context"
	"errors"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/warm"
	"github.com/toolworker/toolworker/internal/tool"
)

var errTimeout = errors.New("timeout")

// forkRun is what is known of one run of a fork server.
type forkRun struct {
	slot     *forkSlot
	spec     *Spec
	cpu      cpuWatch
	started  time.Time
	ended    time.Time
	report   *warm.Report
	timedOut bool
}

// wait waits for the end of the run, or brings it about.
func (r *forkRun) wait(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if t := r.spec.Limits.Timeout(); t > 0 {
		timer := time.AfterFunc(t, func() { cancel(errTimeout) })
		defer timer.Stop()
	}
	r.cpu.start(r.slot.confinement.group, r.spec.Limits, func() { cancel(nil) })
	defer r.cpu.stop()
	var err error
	r.report, err = r.slot.server.Wait(ctx)
	r.ended = time.Now()
	r.timedOut = errors.Is(context.Cause(ctx), errTimeout)
	return err
}

// exit says how the run ended, and what became of the slot.
func (r *forkRun) exit(lost error) (*Exit, warm.Outcome, error) {
	stats := r.slot.statsOfRun()
	e := &Exit{Duration: r.ended.Sub(r.started), Code: 128 + int(unix.SIGKILL), Signal: "SIGKILL", Warm: true}
	e.Sandbox = r.slot.metadata()
	rep := &frame.Report{Kind: frame.Failed}
	outcome := warm.Spent
	if lost != nil {
		if status := r.slot.process.status; status.Exited() && status != 0 {
			return nil, outcome, lost // by itself: no tool can make it do that
		}
	} else {
		if !r.report.Ended && r.report.Started && !r.report.Soiled {
			outcome = warm.Fine
		}
		e.setStatus(syscall.WaitStatus(r.report.Status))
		e.TimedOut = r.timedOut && r.report.Cancelled
		rep = &frame.Report{
			Kind: frame.Exited, Killed: r.report.Cancelled, CPU: r.report.CPU, MaxRSS: r.report.MaxRSS,
			OutOfMemory: r.report.OutOfMemory, TooManyProcesses: r.report.TooManyProcesses || r.tooMany(),
		}
	}
	e.Usage = tool.Usage{CPUMS: milliseconds(rep.CPU), MaxRSSBytes: rep.MaxRSS}
	if !rep.Killed || r.cpu.exceeded.Load() {
		e.Hit, e.HitName = hit(e, r.spec.Limits, rep, stats, r.cpu.exceeded.Load())
	}
	return e, outcome, nil
}

// tooMany: in a room without a control group, the kernel refuses processes
// without a word; a tool that failed with all of them running ran into that.
func (r *forkRun) tooMany() bool {
	limit := r.spec.Limits.PIDs
	return limit > 0 && !r.slot.runner.bounds(cgroup.PIDs) && r.slot.confinement.setup.Room != nil && r.report.Tasks+serverTasks+pidsSlack >= limit
}

// pidsSlack is by how many the tasks that the kernel counts may exceed those
// that are seen.
const pidsSlack = 4

// statsOfRun is what the group's counters say of the run that has ended.
func (f *forkSlot) statsOfRun() cgroup.Stats {
	now := f.events.Stats()
	run := cgroup.Stats{OOMKills: now.OOMKills - f.stats.OOMKills, PIDsHits: now.PIDsHits - f.stats.PIDsHits}
	f.stats = now
	return run
}

// metadata says how the runs of the slot are confined.
func (f *forkSlot) metadata() tool.SandboxMetadata {
	m := f.confinement.metadata
	m.Mechanisms, m.Missing = slices.Clone(m.Mechanisms), slices.Clone(m.Missing)
	return m
}
