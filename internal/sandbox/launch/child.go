// Package launch starts one confined process: a fork whose child, between
// fork and exec, binds itself hand and foot by raw system calls. The parent
// is left as it was, so a supervisor keeps its own capabilities, and nothing
// that it starts shares its Landlock domain.
package launch

import (
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child is a process to start.
type Child struct {
	// Argv is the command line. A name without a slash is searched for in
	// the PATH of Env, in the file system that the child sees.
	Argv []string
	Env  []string // the whole environment, "NAME=value"
	Dir  string   // working directory, "" keeps the parent's
	// Files become the descriptors 0, 1, 2 and so on; every other one is
	// closed on exec.
	Files []int
	// Groups are descriptors of cgroup.procs files of groups to join.
	Groups []int
	// UID and GID are switched to, -1 keeps the parent's.
	UID, GID int
	// DropCaps gives up every capability, the bounding set included.
	DropCaps bool
	// NoNewPrivs is implied by Ruleset and Filter.
	NoNewPrivs bool
	// Ruleset is a Landlock ruleset, -1 for none; the caller closes it.
	Ruleset int
	// Filter is a seccomp program, nil for none.
	Filter []unix.SockFilter
	Limits []Limit
	// OOMFirst makes the kernel end this process before its supervisor when
	// memory runs out.
	OOMFirst bool
}

// Limit is one resource limit, soft and hard.
type Limit struct {
	Resource   int // unix.RLIMIT_*
	Soft, Hard uint64
}

// Error says which step of a start failed.
type Error struct {
	Step  string
	Errno syscall.Errno
}

func (e *Error) Error() string { return e.Step + ": " + e.Errno.Error() }
func (e *Error) Unwrap() error { return e.Errno }

// defaultPath is searched when Env has no PATH, as execvp does.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// candidates are the files that Argv[0] may name, in the order to try them.
func (c *Child) candidates() ([]string, error) {
	if len(c.Argv) == 0 || c.Argv[0] == "" {
		return nil, fmt.Errorf("command is empty: expected a program")
	}
	name := c.Argv[0]
	if strings.Contains(name, "/") {
		return []string{name}, nil
	}
	path := defaultPath
	for _, e := range c.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	var files []string
	for dir := range strings.SplitSeq(path, ":") {
		// An empty or relative member would be searched for in the project,
		// where the tools of yesterday may have written.
		if strings.HasPrefix(dir, "/") {
			files = append(files, strings.TrimSuffix(dir, "/")+"/"+name)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("PATH %q has no absolute directory", path)
	}
	return files, nil
}
