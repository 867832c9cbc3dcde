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

// rulesets keeps the last Landlock ruleset: commands of a slot are mostly
// confined alike.
type rulesets struct {
	stamp string
	fd    int
}

// get gives the ruleset of c, -1 where the kernel has none. It stays open
// until the next call.
func (r *rulesets) get(c *confinement) (int, error) {
	if !c.Landlock {
		return -1, nil
	}
	stamp := c.stamp()
	if stamp == r.stamp {
		return r.fd, nil
	}
	if r.stamp != "" {
		_ = unix.Close(r.fd)
		r.stamp = ""
	}
	rules := landlock.Rules{Read: append(readable(), c.Read...), Write: c.Write, Devices: devices, NoTCP: !c.Network}
	fd, err := rules.Ruleset()
	if err != nil {
		return -1, fmt.Errorf("confine command: %w", err)
	}
	r.stamp, r.fd = stamp, fd
	return fd, nil
}

// stamp tells confinements apart, and the files that their paths led to: a
// ruleset refers to these, whatever becomes of the names.
func (c *confinement) stamp() string {
	b := fmt.Appendf(nil, "%v %q %q", c.Network, c.Read, c.Write)
	for _, paths := range [][]string{{"/"}, c.Read, c.Write} {
		for _, p := range paths {
			var st unix.Stat_t
			_ = unix.Stat(p, &st)
			b = fmt.Appendf(b, " %d:%d", st.Dev, st.Ino)
			if p == "/" { // what is in it counts as well
				b = fmt.Appendf(b, ":%d.%d", st.Mtim.Sec, st.Mtim.Nsec)
			}
		}
	}
	return string(b)
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
