package room

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// protect makes the protected paths of a writable project read-only: a mount
// over the path itself and, so that none of the directories on the way can be
// renamed and replaced, a mount over each of them.
func (r *Room) protect(root int) error {
	if !r.Project.Writable || len(r.Protect) == 0 {
		return nil
	}
	project := strings.TrimPrefix(r.Project.Path, "/")
	done := map[string]bool{}
	for _, p := range r.Protect {
		p = path.Clean(p)
		for i := range len(p) {
			if p[i] == '/' && !done[p[:i]] {
				done[p[:i]] = true
				if err := pin(root, project+"/"+p[:i], true); err != nil {
					return err
				}
			}
		}
		if err := pin(root, project+"/"+p, false); err != nil {
			return err
		}
	}
	return nil
}

// pin mounts what lies at rel over itself.
func pin(root int, rel string, writable bool) error {
	at, err := find(root, rel)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil // nothing there
	}
	if err != nil {
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return fmt.Errorf("look at protected path /%s: %w", rel, err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil // what it leads to is protected by its own path, the link by a guard
	}
	tree, err := detachFD(at, "/"+rel)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	if err := Restrict(tree, writable); err != nil {
		return fmt.Errorf("protect /%s: %w", rel, err)
	}
	return attach(tree, at, "/"+rel)
}
