// Package removal removes what tools left behind: whatever modes they gave
// it, and however deep it is.
package removal

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxLevels is how far a removal goes down; two descriptors are open at each
// level.
const maxLevels = 32

// Tree removes a directory with everything in it. It follows no link and goes
// down a few levels only: directories below those are moved up to the first
// one, where their turn comes. So a chain of a hundred thousand directories
// takes about as long as as many beside each other. What cannot be removed
// stays.
func Tree(dir string) {
	if unix.Rmdir(dir) == nil {
		return
	}
	if Contents(dir) {
		_ = unix.Rmdir(dir)
	}
}

// Contents is Tree for what is in a directory, which itself stays. It reports
// whether the directory is there and empty.
func Contents(dir string) bool {
	fd, err := open(unix.AT_FDCWD, dir)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	t := &tree{top: fd}
	for t.level(fd, 0) {
	}
	return !t.left
}

// tree is a tree that is being removed.
type tree struct {
	top   int
	moved uint64
	left  bool // the last look at the first level found something
}

// level goes once over a directory that lies so deep. It reports whether
// something changed, so that another look is worth it.
func (t *tree) level(dir, depth int) (progress bool) {
	list, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.left = true
		return false
	}
	f := os.NewFile(uintptr(list), "directory")
	defer f.Close()
	if dir == t.top {
		t.left = false
	}
	for {
		names, err := f.Readdirnames(512)
		if dir == t.top && len(names) > 0 {
			t.left = true
		}
		for _, name := range names {
			progress = t.entry(dir, name, depth) || progress
		}
		if err != nil {
			return progress
		}
	}
}

// entry removes one entry, or brings its removal nearer.
func (t *tree) entry(dir int, name string, depth int) (progress bool) {
	if unix.Unlinkat(dir, name, 0) == nil || unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) == nil {
		return true
	}
	if depth == maxLevels {
		return t.moveUp(dir, name)
	}
	sub, err := open(dir, name)
	if err != nil {
		return false
	}
	defer unix.Close(sub)
	progress = t.level(sub, depth+1)
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) == nil || progress
}

// moveUp moves a directory to the first level, under a name of its own. The
// kernel wants to write the directory itself for that.
func (t *tree) moveUp(dir int, name string) bool {
	sub, err := open(dir, name)
	if err != nil {
		return false
	}
	_ = unix.Close(sub)
	const attempts = 100 // a tool may have thought of these names
	for range attempts {
		t.moved++
		err := unix.Renameat2(dir, name, t.top, ".removed-"+strconv.FormatUint(t.moved, 36), unix.RENAME_NOREPLACE)
		if err != unix.EEXIST {
			return err == nil
		}
	}
	return false
}

// open opens a directory and sees to it that it may be changed.
func open(at int, name string) (int, error) {
	const dir = unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	path, err := unix.Openat(at, name, unix.O_PATH|dir, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if unix.Fstat(path, &st) == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Chmod("/proc/self/fd/"+strconv.Itoa(path), 0o700)
	}
	return unix.Openat(path, ".", unix.O_RDONLY|dir, 0)
}
