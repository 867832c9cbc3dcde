package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/removal"
	"github.com/toolworker/toolworker/internal/sandbox/warm"
	"github.com/toolworker/toolworker/internal/tool"
)

// A fork server and the init of each run's process namespace live in the
// control group of the runs: the group's limits are higher by this much.
const (
	serverMemory = 16 << 20
	serverTasks  = 2
	// supervisorTasks are the threads that the kernel counts in a room beside
	// those of the runs and of the server; at most.
	supervisorTasks = 12
	serverFiles     = 6
)

// forkSlot is a room with a fork server.
type forkSlot struct {
	runner      *runner
	confinement *confinement
	process     *heldProcess
	server      *warm.Server
	temporary   string // emptied after each run, "" for none
	emptying    sync.WaitGroup
	events      *cgroup.Events
	stats       cgroup.Stats // of all runs so far
}

// startFork starts a room with a fork server for runs like s.
func (w *warmth) startFork(ctx context.Context, s *Spec) (ready, error) {
	program, err := w.program()
	if err != nil {
		return nil, err
	}
	spec := *s
	spec.Limits = tool.Limits{MemoryBytes: raised(s.Limits.MemoryBytes, serverMemory), PIDs: raised(s.Limits.PIDs, serverTasks), CPUs: s.Limits.CPUs}
	c, err := w.runner.confine(&spec, w.runner.level, serverFiles)
	if err != nil {
		return nil, err
	}
	c.setup.Limits = []launch.Limit{launch.NoCore()}
	settings := w.runner.settings(c, s)
	c.setup.Argv, c.setup.Dir, c.setup.Landlock, c.setup.Filter = program.Argv, "/", nil, nil
	c.setup.UID, c.setup.GID, c.setup.DropCaps, c.setup.NoNewPrivs, c.setup.OOMFirst = -1, -1, false, false, false
	slot := &forkSlot{runner: w.runner, confinement: c, temporary: c.setup.Temporary}
	slot.server, err = warm.Start(ctx, func(files []*os.File) (warm.Process, error) {
		var err error
		slot.process, err = w.runner.hold(c, files)
		return slot.process, err
	}, program.Prologue, settings)
	if err != nil {
		if slot.process != nil {
			err = errors.Join(slot.process.failed, err)
		}
		c.started()
		c.release()
		return nil, err
	}
	if w.runner.level == tool.IsolationFull {
		c.mechanism(!slot.process.begun(), "proc")
	}
	slot.events = c.group.Events()
	slot.stats = slot.events.Stats()
	return slot, nil
}

// raised is a limit made higher; none stays none.
func raised(limit, by int64) int64 {
	if limit <= 0 {
		return 0
	}
	return limit + by
}

// settings are what the children of a fork server do to themselves, so that
// they are confined as c, which is for a single run of s, says.
func (r *runner) settings(c *confinement, s *Spec) *warm.Settings {
	settings := &warm.Settings{
		Dir: c.setup.Dir, UID: c.setup.UID, GID: c.setup.GID, DropCaps: c.setup.DropCaps, Filter: c.setup.Filter,
		Preload: r.config.Preload,
	}
	if c.setup.Landlock != nil {
		settings.Landlock = c.setup.Landlock.Plan()
	}
	if !r.bounds(cgroup.Memory) {
		settings.MemoryBytes = s.Limits.MemoryBytes
	}
	if !r.bounds(cgroup.PIDs) {
		settings.PIDs, settings.Uncounted = s.Limits.PIDs, c.setup.Uncounted
	}
	// The supervisor would look at the server all the time, runs or not.
	c.setup.MemoryBytes, c.setup.PIDs = 0, 0
	room := c.setup.Room
	if room == nil {
		return settings
	}
	if settings.PIDs > 0 {
		n := uint64(settings.PIDs + serverTasks + supervisorTasks)
		c.setup.Limits = append(c.setup.Limits, launch.Limit{Resource: unix.RLIMIT_NPROC, Soft: n, Hard: n})
	}
	settings.Namespaces, settings.OwnNet = true, !s.Network
	const plain = unix.MS_NOSUID | unix.MS_NODEV
	settings.Mounts = []warm.Mount{
		{Kind: "proc", At: "/proc", Flags: plain | unix.MS_NOEXEC, Options: "subset=pid,hidepid=2", Optional: true},
		{Kind: "tmpfs", At: "/tmp", Flags: plain, Options: fmt.Sprintf("mode=1777,size=%d,nr_inodes=%d", room.TmpBytes, room.TmpFiles)},
		{Kind: "tmpfs", At: "/dev/shm", Flags: plain | unix.MS_NOEXEC, Options: fmt.Sprintf("mode=1777,size=%d,nr_inodes=%d", room.ShmBytes, room.TmpFiles)},
	}
	dirs := []string{room.Project.Path}
	for _, m := range room.ReadOnly {
		dirs = append(dirs, m.Path)
	}
	settings.Again = hidden(dirs)
	return settings
}

// hidden are the directories that a new /tmp or /dev/shm would hide, without
// those below another.
func hidden(dirs []string) []string {
	var found []string
	for _, d := range dirs {
		if strings.HasPrefix(d+"/", "/tmp/") || strings.HasPrefix(d+"/", "/dev/shm/") {
			found = append(found, d)
		}
	}
	var outermost []string
	for _, d := range found {
		below := false
		for _, other := range found {
			below = below || d != other && strings.HasPrefix(d, other+"/")
		}
		if !below {
			outermost = append(outermost, d)
		}
	}
	return outermost
}

// run implements ready.
func (f *forkSlot) run(ctx context.Context, s *Spec) (*Exit, warm.Outcome, error) {
	request, err := f.runner.request(s)
	if err != nil {
		return nil, warm.Fine, err
	}
	streams, err := newForkStreams(s)
	if err != nil {
		return nil, warm.Fine, err
	}
	run := &forkRun{slot: f, spec: s, started: time.Now()}
	err = f.server.Send(&warm.Job{Frame: request, Output: streams.tool[0], Value: streams.tool[1]})
	streams.closeTool()
	if err != nil {
		streams.abandon()
		return nil, warm.Broken, err
	}
	err = run.wait(ctx)
	value, reason := streams.finish()
	if err != nil && !errors.Is(err, warm.ErrLost) {
		return nil, warm.Broken, err
	}
	exit, outcome, err := run.exit(err)
	if err != nil {
		return nil, outcome, err
	}
	exit.Value, exit.ValueError = value, reason
	exit.believe(streams.limit)
	if outcome == warm.Fine && f.temporary != "" && !f.emptied() {
		outcome = warm.Spent
	}
	return exit, outcome, nil
}

// Close implements warm.Slot.
func (f *forkSlot) Close() error {
	err := f.server.Close()
	f.events.Close()
	f.emptying.Wait()
	f.confinement.release()
	return err
}

// emptyTime is how long an answer waits until what its run left behind is
// removed: a slot in which there is more than that is replaced instead.
const emptyTime = 50 * time.Millisecond

// emptied removes what a run left in the slot's directory for temporary files,
// and reports whether the next one may come.
func (f *forkSlot) emptied() bool {
	empty := make(chan bool, 1)
	f.emptying.Go(func() { empty <- removal.Contents(f.temporary) })
	select {
	case ok := <-empty:
		return ok
	case <-time.After(emptyTime):
		return false
	}
}
