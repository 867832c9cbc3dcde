// Package room is the file system in which a tool lives at level full: a
// root of its own with the system's programs, read-only, a private /proc and
// /tmp, five devices, and the project at its own absolute path.
//
// [Namespaces] is how the worker starts the process that builds the room;
// [Room.Build] is called by that process, as the first one of its namespaces,
// and leaves it inside.
package room

// Inside identity of every tool: one unprivileged user, mapped to whoever the
// worker chose on the outside.
const (
	UID = 1000
	GID = 1000
)

// Room says what a tool sees.
type Room struct {
	// Project is the project directory.
	Project Mount
	// Protect are paths relative to the project that stay read-only in a
	// writable one. What does not exist is skipped.
	Protect []string
	// ReadOnly are further directories: interpreter, catalogue, exposed ones.
	// What lies below /usr is visible anyway.
	ReadOnly []Mount
	// Network: the files that a program needs to find and to trust hosts are there.
	Network bool
	// TmpBytes and TmpFiles bound /tmp, ShmBytes /dev/shm.
	TmpBytes, TmpFiles, ShmBytes int64
}

// Mount is a directory of the host, visible at its own path.
type Mount struct {
	Path string // absolute, without symbolic links
	// FD is the descriptor of a mount that the worker prepared, 0 when the
	// builder opens the path by itself.
	FD       int
	Writable bool
}

// MissingProc is the part that a Room can do without; it is then reported.
const MissingProc = "proc"
