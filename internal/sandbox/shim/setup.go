// Package shim is the supervisor of one sandbox: the worker's own binary,
// executed again. It builds the room, starts the confined process, reaps what
// that leaves behind, says how it ended, and takes the whole tree with it
// when it goes.
package shim

import (
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/room"
)

// Arg0 is the name under which the worker's binary is executed as a shim.
const Arg0 = "toolworker-sandbox"

// Descriptors of a shim: the control socket, then those of the tool, which
// become its 0, 1, 2 and so on.
const (
	ControlFD = 3
	FilesFD   = 4
)

// Setup is what a shim is to do.
type Setup struct {
	Argv []string
	Env  []string
	Dir  string
	// Files is how many descriptors, from FilesFD on, belong to the tool.
	Files int
	// UID and GID are those of the tool, -1 keeps the shim's.
	UID, GID   int
	DropCaps   bool
	NoNewPrivs bool
	OOMFirst   bool
	Limits     []launch.Limit
	// Groups are descriptors of control groups that the tool joins.
	Groups []int
	// MemoryBytes and PIDs bound the tree where no control group does, 0 does
	// not.
	MemoryBytes, PIDs int64
	// Uncounted: the kernel does not count the tool's processes by
	// themselves. The supervisor ends a tree that has more than PIDs.
	Uncounted bool
	// Temporary is a directory to remove at the end, "" for none.
	Temporary string
	// Room is built first; nil leaves the host's file system.
	Room *room.Room
	// Landlock holds paths as the tool sees them; nil for no domain.
	Landlock *landlock.Rules
	// Filter is the system call filter, struct sock_filter by struct
	// sock_filter; empty for none.
	Filter []byte
}
