package agent

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
)

// confinement is what a command in a container may touch. The container is
// the outer boundary: all of it may be read, but of the directories for
// temporary files only its own.
type confinement struct {
	Landlock bool     `json:"landlock,omitzero"`
	Read     []string `json:"read,omitzero"` // beside what everybody may read
	Write    []string `json:"write,omitzero"`
	// Writable: the project is among what may be written.
	Writable bool `json:"writable,omitzero"`
	Network  bool `json:"network,omitzero"`
}

// devices may be read and written by everybody.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// ruleset is the Landlock ruleset, -1 where the kernel has none.
func (c *confinement) ruleset() (int, error) {
	if !c.Landlock {
		return -1, nil
	}
	rules := landlock.Rules{Read: append(readable(), c.Read...), Write: c.Write, Devices: devices, NoTCP: !c.Network}
	fd, err := rules.Ruleset()
	if err != nil {
		return -1, fmt.Errorf("confine command: %w", err)
	}
	return fd, nil
}

// readable is everything in the root directory but temporary files.
func readable() []string {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil
	}
	dirs := make([]string, 0, len(entries))
	for _, e := range entries {
		if e.Name() != "tmp" {
			dirs = append(dirs, "/"+e.Name())
		}
	}
	return dirs
}

// filter is the system call filter, nil on a machine that none can be written
// for. Other processes of the same user are all around: it is the filter of
// tools without namespaces of their own.
func (c *confinement) filter() []unix.SockFilter {
	return filterFor(seccomp.Options{Shared: true, NoMemfd: true, Inet: c.Network, Attributes: c.Writable})
}

var filters sync.Map // seccomp.Options to []unix.SockFilter

func filterFor(o seccomp.Options) []unix.SockFilter {
	if f, ok := filters.Load(o); ok {
		return f.([]unix.SockFilter)
	}
	arch, err := seccomp.Native()
	if err != nil {
		return nil
	}
	f := arch.Filter(o)
	filters.Store(o, f)
	return f
}
