package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Limits bound a group; a zero member does not.
type Limits struct {
	MemoryBytes int64
	PIDs        int64
	CPUs        float64
}

// Group holds the processes of one tool.
type Group struct {
	manager *Manager
	parts   []groupPart
}

type groupPart struct {
	dir   string
	v2    bool
	procs *os.File
	part  part
}

// New makes a group with limits. The caller closes it when its last process
// is dead.
func (m *Manager) New(l Limits) (*Group, error) {
	m.retry()
	m.mu.Lock()
	m.next++
	name := "r" + strconv.Itoa(m.next)
	m.mu.Unlock()
	g := &Group{manager: m}
	for _, p := range m.parts {
		gp := groupPart{dir: filepath.Join(p.base, name), v2: p.v2, part: p}
		if err := os.Mkdir(gp.dir, 0o755); err != nil {
			g.Close()
			return nil, fmt.Errorf("make control group: %w", err)
		}
		g.parts = append(g.parts, gp)
		if err := gp.limit(l); err != nil {
			g.Close()
			return nil, fmt.Errorf("limit control group: %w", err)
		}
		f, err := os.OpenFile(filepath.Join(gp.dir, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			g.Close()
			return nil, fmt.Errorf("open control group: %w", err)
		}
		g.parts[len(g.parts)-1].procs = f
	}
	return g, nil
}

// cpuPeriod is the time in which a cpu limit is measured, in microseconds.
const cpuPeriod = 100_000

func (p *groupPart) limit(l Limits) error {
	set := func(controller, file, value string) error {
		if !slices.Contains(p.part.controllers, controller) {
			return nil
		}
		return write(filepath.Join(p.dir, file), value)
	}
	// The kernel takes no quota below a millisecond.
	quota := strconv.Itoa(max(1000, int(math.Round(l.CPUs*cpuPeriod))))
	memory, pids := strconv.FormatInt(l.MemoryBytes, 10), strconv.FormatInt(l.PIDs, 10)
	var errs []error
	switch {
	case p.v2:
		if l.MemoryBytes > 0 {
			errs = append(errs, set(Memory, "memory.max", memory), ifThere(set(Memory, "memory.swap.max", "0")))
		}
		if l.CPUs > 0 {
			errs = append(errs, set(CPU, "cpu.max", quota+" "+strconv.Itoa(cpuPeriod)))
		}
	default:
		if l.MemoryBytes > 0 {
			errs = append(errs, set(Memory, "memory.limit_in_bytes", memory), ifThere(set(Memory, "memory.memsw.limit_in_bytes", memory)))
		}
		if l.CPUs > 0 {
			errs = append(errs, set(CPU, "cpu.cfs_period_us", strconv.Itoa(cpuPeriod)), set(CPU, "cpu.cfs_quota_us", quota))
		}
	}
	if l.PIDs > 0 {
		errs = append(errs, set(PIDs, "pids.max", pids))
	}
	return errors.Join(errs...)
}

// ifThere forgives that a kernel accounts no swap.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Entries are the files through which a process joins the group: it writes
// "0" to each. They are the group's, valid until Close.
func (g *Group) Entries() []*os.File {
	var files []*os.File
	for _, p := range g.parts {
		files = append(files, p.procs)
	}
	return files
}

// Kill ends every process of the group: at once where the kernel can, else one
// by one, as long as new ones appear.
func (g *Group) Kill() {
	for _, p := range g.parts {
		if p.v2 && write(filepath.Join(p.dir, "cgroup.kill"), "1") == nil {
			return
		}
	}
	for _, p := range g.parts {
		_ = write(filepath.Join(p.dir, "pids.max"), "0") // where it is bounded, it cannot outrun this
	}
	const rounds = 50
	for range rounds {
		alive := false
		for _, p := range g.parts {
			alive = killAll(p.dir) || alive
		}
		if !alive {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// killAll kills the processes of a directory and reports whether there were any.
func killAll(dir string) bool {
	found := false
	for f := range strings.FieldsSeq(read(filepath.Join(dir, "cgroup.procs"))) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			found = true
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
	return found
}

// Close removes the group. The kernel may need a moment after the last
// process; what it will not let go is tried again with the next group.
func (g *Group) Close() {
	for _, p := range g.parts {
		if p.procs != nil {
			_ = p.procs.Close()
		}
		if !remove(p.dir) {
			g.manager.mu.Lock()
			g.manager.behind = append(g.manager.behind, p.dir)
			g.manager.mu.Unlock()
		}
	}
	g.parts = nil
}

// retry removes what earlier groups left behind.
func (m *Manager) retry() {
	m.mu.Lock()
	behind := m.behind
	m.behind = nil
	m.mu.Unlock()
	for _, dir := range behind {
		if !remove(dir) {
			m.mu.Lock()
			m.behind = append(m.behind, dir)
			m.mu.Unlock()
		}
	}
}

// remove removes an empty group, waiting at most a tenth of a second.
func remove(dir string) bool {
	for pause := 100 * time.Microsecond; ; pause *= 2 {
		err := unix.Rmdir(dir)
		if err == nil || err == unix.ENOENT {
			return true
		}
		if pause > 50*time.Millisecond {
			return false
		}
		time.Sleep(pause)
	}
}
