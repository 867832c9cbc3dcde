package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Controllers that bound or measure something.
const (
	Memory  = "memory"
	PIDs    = "pids"
	CPU     = "cpu"
	CPUAcct = "cpuacct" // version 1; version 2 always measures cpu time
)

var wanted = []string{Memory, PIDs, CPU, CPUAcct}

// Manager makes the groups of one worker.
type Manager struct {
	parts []part

	mu     sync.Mutex
	next   int
	behind []string // groups that could not be removed yet
}

// part is the worker's directory in one hierarchy.
type part struct {
	base        string
	v2          bool
	controllers []string
}

// Open finds the hierarchies in which this process may make groups, removes
// what dead workers left in them, and makes the worker's directories. A
// Manager without any is fine: its groups bound nothing.
func Open() *Manager {
	m := &Manager{}
	for _, h := range hierarchies("/proc/self/mountinfo", "/proc/self/cgroup") {
		if p, err := h.open(); err == nil {
			m.parts = append(m.parts, p)
		}
	}
	return m
}

// Has reports whether groups bound by this controller, and with which
// version of control groups.
func (m *Manager) Has(controller string) (version int, ok bool) {
	for _, p := range m.parts {
		if slices.Contains(p.controllers, controller) {
			if p.v2 {
				return 2, true
			}
			return 1, true
		}
	}
	return 0, false
}

// CountsCPU reports whether groups measure cpu time.
func (m *Manager) CountsCPU() bool {
	return slices.ContainsFunc(m.parts, func(p part) bool { return p.v2 || slices.Contains(p.controllers, CPUAcct) })
}

// Close removes the worker's directories.
func (m *Manager) Close() error {
	m.retry()
	var errs []error
	for _, p := range m.parts {
		if err := os.Remove(p.base); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
		}
	}
	m.parts = nil
	return errors.Join(errs...)
}

// open makes the worker's directory in a hierarchy.
func (h mounted) open() (part, error) {
	if !h.v2 {
		sweep(h.own)
		p := part{filepath.Join(h.own, dirName()), false, h.controllers}
		return p, os.Mkdir(p.base, 0o755)
	}
	dir, controllers, err := h.delegated()
	if err != nil {
		return part{}, err
	}
	sweep(dir)
	p := part{filepath.Join(dir, dirName()), true, controllers}
	if err := os.Mkdir(p.base, 0o755); err != nil {
		return part{}, err
	}
	if err := enable(p.base, controllers); err != nil {
		_ = os.Remove(p.base)
		return part{}, err
	}
	return p, nil
}

// delegated finds the nearest group, from this process's own upwards, below
// which groups may be made and bounded; if none bounds, then one in which
// groups can at least be made, for they can be killed as one.
func (h mounted) delegated() (dir string, controllers []string, err error) {
	fallback := ""
	for dir := h.own; ; dir = filepath.Dir(dir) {
		if unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil {
			if dir == h.own {
				enableOwn(dir)
			}
			if c := among(filepath.Join(dir, "cgroup.subtree_control")); len(c) > 0 {
				return dir, c, nil
			}
			if fallback == "" {
				fallback = dir
			}
		}
		if dir == h.mount || len(dir) <= len(h.mount) {
			break
		}
	}
	if fallback == "" {
		return "", nil, fmt.Errorf("control group %s: not delegated: %w", h.own, unix.EACCES)
	}
	return fallback, nil, nil
}

// enableOwn enables what can be for the groups below the worker's own. A group
// with processes may not bound the groups below it, so a worker that is alone
// in its group moves into one of its own.
func enableOwn(dir string) {
	available := among(filepath.Join(dir, "cgroup.controllers"))
	enabled := among(filepath.Join(dir, "cgroup.subtree_control"))
	available = slices.DeleteFunc(available, func(c string) bool { return slices.Contains(enabled, c) })
	if len(available) == 0 || enable(dir, available) == nil {
		return
	}
	if strings.TrimSpace(read(filepath.Join(dir, "cgroup.procs"))) != strconv.Itoa(os.Getpid()) {
		return
	}
	leaf := filepath.Join(dir, "worker")
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return
	}
	if write(filepath.Join(leaf, "cgroup.procs"), "0") == nil {
		_ = enable(dir, available)
	}
}

func enable(dir string, controllers []string) error {
	if len(controllers) == 0 {
		return nil
	}
	return write(filepath.Join(dir, "cgroup.subtree_control"), "+"+strings.Join(controllers, " +"))
}

// among are the wanted controllers that a file lists.
func among(file string) []string {
	var found []string
	for c := range strings.FieldsSeq(read(file)) {
		if slices.Contains(wanted, c) {
			found = append(found, c)
		}
	}
	return found
}

func read(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return string(b)
}

// write writes to a file that exists: a control file that a kernel does not
// have is not made up.
func write(file, s string) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s)
	return errors.Join(err, f.Close())
}
