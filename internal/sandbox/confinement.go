package sandbox

import (
	"fmt"
	"os"
	"syscall"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
	"github.com/toolworker/toolworker/internal/sandbox/shim"
	"github.com/toolworker/toolworker/internal/tool"
)

// confinement is how one tool is confined: how its supervisor is started, what
// that is told, and what is reported.
type confinement struct {
	attr     *syscall.SysProcAttr
	files    []*os.File // further descriptors of the supervisor, closed once it has them
	setup    *shim.Setup
	group    *cgroup.Group
	metadata tool.SandboxMetadata
	tidied   bool   // the supervisor removes the temporary files by itself
	release  func() // when everything is dead
}

// confine prepares the confinement of s at a level; files is how many
// descriptors the tool gets.
func (r *runner) confine(s *Spec, level tool.Isolation, files int) (*confinement, error) {
	c := &confinement{
		attr:    &syscall.SysProcAttr{},
		release: func() {},
		setup: &shim.Setup{
			Argv: r.argv(s), Env: s.Env, Dir: s.Root, Files: files,
			UID: -1, GID: -1, OOMFirst: true, Uncounted: level != tool.IsolationFull,
			Limits: launch.Limits(s.Limits, r.cgroups.CountsCPU()),
		},
		metadata: tool.SandboxMetadata{Isolation: level, Missing: []string{}},
	}
	switch level {
	case tool.IsolationFull:
		if err := r.confineFully(c, s); err != nil {
			return nil, err
		}
	case tool.IsolationReduced:
		if err := r.confineReduced(c, s); err != nil {
			c.release()
			return nil, err
		}
	case tool.IsolationNone:
		c.mechanism(false, namespaces...)
		c.mechanism(false, "capabilities", "no_new_privs", "landlock", "seccomp")
	default:
		return nil, fmt.Errorf("isolation level %q: unknown", level)
	}
	if err := r.limit(c, s.Limits); err != nil {
		c.started()
		c.release()
		return nil, err
	}
	return c, nil
}

// confineFully gives s a room of its own.
func (r *runner) confineFully(c *confinement, s *Spec) error {
	g, err := r.newGround(s, shim.FilesFD+c.setup.Files)
	if err != nil {
		return err
	}
	c.attr, c.files, c.release = g.attr, g.mounts, g.release
	c.setup.Room, c.setup.Uncounted = &g.room, g.root
	c.setup.DropCaps, c.setup.NoNewPrivs = true, true
	c.mechanism(true, "user", "mount", "pid", "ipc", "uts", "cgroup")
	c.mechanism(!s.Network, "net")
	c.mechanism(true, "capabilities", "no_new_privs")
	if r.landlock > 0 {
		c.setup.Landlock = roomRules(s)
	}
	c.mechanism(r.landlock > 0, "landlock")
	c.mechanism(r.landlock >= landlock.ScopesABI, "landlock_scopes")
	c.setup.Filter = r.filters.get(seccomp.Options{
		NoMemfd: !r.bounds(cgroup.Memory), NoUnix: s.Network && r.landlock < landlock.ScopesABI,
	})
	c.mechanism(true, "seccomp")
	c.metadata.Missing = append(c.metadata.Missing, g.missing...)
	return nil
}

// roomRules is Landlock within a room: a second wall behind the mounts, and
// the one that keeps signals inside.
func roomRules(s *Spec) *landlock.Rules {
	rules := &landlock.Rules{
		Read:    []string{"/"},
		Write:   []string{"/tmp", "/dev/shm"},
		Devices: devicesOfTools,
	}
	if s.Writable {
		rules.Write = append(rules.Write, s.Root)
	}
	return rules
}

// mechanism says that these are in force, or missing.
func (c *confinement) mechanism(inForce bool, names ...string) {
	if inForce {
		c.metadata.Mechanisms = append(c.metadata.Mechanisms, names...)
	} else {
		c.metadata.Missing = append(c.metadata.Missing, names...)
	}
}

// started closes what the supervisor has now.
func (c *confinement) started() {
	for _, f := range c.files {
		_ = f.Close()
	}
}
