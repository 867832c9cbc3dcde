package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// kindOf names everything that two runs must have in common to follow each
// other in one room: all of a Spec but the code, its name and input, and the
// limits that a run sets for itself. The directories are what they are now, not
// only what they are called: a room shows those that it was built with.
func kindOf(s *Spec) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %t %t %q\n", s.Project, s.Root, s.Env, s.Writable, s.Network, s.Least)
	fmt.Fprintf(h, "%d %d %g\n", s.Limits.MemoryBytes, s.Limits.PIDs, s.Limits.CPUs)
	if err := identify(h, s.Root, false); err != nil {
		return "", err
	}
	for _, p := range s.Protect {
		// The directories on the way are mounts in the room as well.
		for part := filepath.Clean(p); part != "."; part = filepath.Dir(part) {
			if err := identify(h, filepath.Join(s.Root, part), true); err != nil {
				return "", err
			}
		}
	}
	for _, dir := range s.ReadOnly {
		if err := identify(h, dir, false); err != nil {
			return "", err
		}
	}
	return s.Project + "-" + hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// identify writes which file a path is, and whose.
func identify(h hash.Hash, path string, optional bool) error {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if optional && (errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)) {
		fmt.Fprintf(h, "%q -\n", path)
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	fmt.Fprintf(h, "%q %d %d %o %d %d\n", path, st.Dev, st.Ino, st.Mode, st.Uid, st.Gid)
	return nil
}
