package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/shim"
	"github.com/toolworker/toolworker/internal/tool"
)

// bounds reports whether control groups bound by this controller.
func (r *runner) bounds(controller string) bool {
	_, ok := r.cgroups.Has(controller)
	return ok
}

// limit puts the tool into a control group of its own. What no control group
// bounds here is left to the supervisor and to resource limits.
func (r *runner) limit(c *confinement, l tool.Limits) error {
	group, err := r.cgroups.New(cgroup.Limits{MemoryBytes: l.MemoryBytes, PIDs: l.PIDs, CPUs: l.CPUs})
	if err != nil {
		return err
	}
	c.group = group
	release := c.release
	c.release = func() {
		group.Close()
		release()
	}
	for _, f := range group.Entries() {
		fd, err := reopen(f)
		if err != nil {
			return fmt.Errorf("open control group: %w", err)
		}
		c.setup.Groups = append(c.setup.Groups, shim.FilesFD+c.setup.Files+len(c.files))
		c.files = append(c.files, fd)
	}
	c.limitBy("memory", cgroup.Memory, r.cgroups, func() { c.setup.MemoryBytes = l.MemoryBytes })
	c.limitBy("pids", cgroup.PIDs, r.cgroups, func() { c.setup.PIDs = l.PIDs })
	if r.bounds(cgroup.CPU) {
		c.limitBy("cpus", cgroup.CPU, r.cgroups, nil)
	} else {
		c.mechanism(false, "cpus")
	}
	c.mechanism(true, "cpu_seconds:rlimit", "file_size:rlimit", "open_files:rlimit")
	return nil
}

// limitBy says by what a limit is held, and has another hold it where no
// control group does.
func (c *confinement) limitBy(name, controller string, m *cgroup.Manager, otherwise func()) {
	if version, ok := m.Has(controller); ok {
		c.mechanism(true, fmt.Sprintf("%s:cgroup%d", name, version))
		return
	}
	c.mechanism(true, name+":supervisor")
	otherwise()
}

// reopen gives a descriptor of its own, for a supervisor.
func reopen(f *os.File) (*os.File, error) {
	return os.OpenFile(f.Name(), os.O_WRONLY, 0)
}

// cpuWatch ends a tool whose whole tree has used its cpu time: a resource
// limit counts each process by itself.
type cpuWatch struct {
	quit     chan struct{}
	exceeded atomic.Bool
}

// start watches, if there is a limit and a control group that counts.
func (w *cpuWatch) start(g *cgroup.Group, l tool.Limits, kill func()) {
	limit := time.Duration(l.CPUSeconds * float64(time.Second))
	if limit <= 0 {
		return
	}
	w.quit = make(chan struct{})
	before := g.CPU() // of earlier runs in the same group
	go func() {
		for {
			used := g.CPU() - before
			if used >= limit {
				w.exceeded.Store(true)
				kill()
				return
			}
			// It cannot be used up any earlier than this.
			select {
			case <-w.quit:
				return
			case <-time.After(max((limit-used)/time.Duration(runtime.NumCPU()), 5*time.Millisecond)):
			}
		}
	}()
}

func (w *cpuWatch) stop() {
	if w.quit != nil {
		close(w.quit)
	}
}
