package safefile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is a directory and everything that is done below it. Its methods may
// be called from several goroutines.
type Root struct {
	dir   *os.File // O_PATH
	path  string
	names [][]string // components of the paths that mean the root
	// uid and gid own what Write creates, if the process may give files away.
	uid, gid int
	mount    mountID
}

// OpenRoot opens an absolute path as a root. The file system's root is
// refused, and so is what is no directory. Symlinks on the way to it are
// followed: it is the operator's path, not the tool's.
func OpenRoot(path string) (*Root, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("open root %q: expected an absolute path", path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("open root: %w", err)
	}
	if len(components(resolved)) == 0 {
		return nil, fmt.Errorf("open root %q: the root of the file system is refused", path)
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(resolved, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, fmt.Errorf("open root %s: %w", path, err)
	}
	r := &Root{
		dir:   os.NewFile(uintptr(fd), resolved),
		path:  resolved,
		names: [][]string{components(resolved), components(path)},
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		r.Close()
		return nil, fmt.Errorf("stat root %s: %w", path, err)
	}
	r.uid, r.gid = int(st.Uid), int(st.Gid)
	r.mount = mountOf(fd, &st)
	return r, nil
}

// Path is the absolute path of the root, symlinks resolved.
func (r *Root) Path() string { return r.path }

// Close gives the descriptor back. It is idempotent.
func (r *Root) Close() error {
	if err := r.dir.Close(); err != nil && !isClosed(err) {
		return fmt.Errorf("close root %s: %w", r.path, err)
	}
	return nil
}
