package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/room"
)

// ground is what a room at level full stands on: who its user is on the host,
// the namespaces, and the mounts that only the worker can open.
//
// Ownership: inside, there is one user. On the host it is the worker's own
// user when the worker has no privileges. A privileged worker takes a user that
// nobody else has, and maps it in the mount of the project to the directory's
// owner and group: the tool may do there what the owner may, and what it
// creates is the owner's, root included; outside of the project it is nobody.
// On file systems that know no mapped mounts the tool's user is the owner
// itself, which is said in the result.
type ground struct {
	room   room.Room
	attr   *syscall.SysProcAttr
	mounts []*os.File // in the order of their descriptors in the room
	// missing are the mechanisms that this ground does without.
	missing []string
	// root: the tool's user is root on the host, whose processes the kernel
	// does not count.
	root   bool
	runner *runner
	slot   room.Identity
	first  int
}

const missingOwnerMap = "idmap"

// newGround prepares the ground for a room of s. The descriptors of its mounts
// begin with first in the process that builds the room.
func (r *runner) newGround(s *Spec, first int) (*ground, error) {
	slot, err := r.identities.take()
	if err != nil {
		return nil, err
	}
	g := &ground{runner: r, slot: slot, first: first}
	if err := g.prepare(s); err != nil {
		g.release()
		return nil, err
	}
	return g, nil
}

func (g *ground) prepare(s *Spec) error {
	own, _, err := ownerOf(s.Root)
	if err != nil {
		return fmt.Errorf("project directory: %w", err)
	}
	g.room = room.Room{
		Protect: s.Protect, Network: s.Network,
		TmpBytes: g.runner.config.TmpBytes, TmpFiles: g.runner.config.TmpFiles, ShmBytes: g.runner.config.TmpBytes,
	}
	who := g.slot
	project := room.Mount{Path: s.Root, Writable: s.Writable}
	if g.slot.Privileged {
		err := g.mount(&project, &own)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
			who = room.Identity{UID: own.UID, GID: own.GID, Privileged: true}
			g.missing = append(g.missing, missingOwnerMap)
			err = g.mount(&project, nil)
		}
		if err != nil {
			return err
		}
	}
	g.room.Project = project
	for _, dir := range g.runner.visible(s) {
		m := room.Mount{Path: dir}
		if g.slot.Privileged {
			own, mode, err := ownerOf(dir)
			if err != nil {
				return fmt.Errorf("read-only directory: %w", err)
			}
			// Who shows a private directory to tools means what is in it.
			private := &own
			if mode&0o005 == 0o005 || len(g.missing) > 0 {
				private = nil
			}
			if err := g.mount(&m, private); err != nil {
				return err
			}
		}
		g.room.ReadOnly = append(g.room.ReadOnly, m)
	}
	g.attr, g.root = room.Namespaces(who, s.Network), who.UID == 0
	return nil
}

// mount opens m for the room.
func (g *ground) mount(m *room.Mount, own *owner) error {
	var fd int
	var err error
	if own == nil {
		fd, err = m.Prepare(-1)
	} else {
		err = g.runner.owners.with(*own, g.slot, func(namespace int) error {
			fd, err = m.Prepare(namespace)
			return err
		})
	}
	if err != nil {
		return err
	}
	m.FD = g.first + len(g.mounts)
	g.mounts = append(g.mounts, os.NewFile(uintptr(fd), m.Path))
	return nil
}

// visible are the directories beside the project that a room of s shows and
// /usr does not.
func (r *runner) visible(s *Spec) []string {
	var dirs []string
	for _, d := range append(append([]string{}, r.interpreter.Dirs...), s.ReadOnly...) {
		if d != "/usr" && !strings.HasPrefix(d, "/usr/") && d != s.Root {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// started closes the worker's descriptors of the mounts.
func (g *ground) started() {
	for _, f := range g.mounts {
		_ = f.Close()
	}
	g.mounts = nil
}

// release gives the slot back. Nothing of the room may be alive any more.
func (g *ground) release() {
	g.started()
	g.runner.identities.give(g.slot)
}
