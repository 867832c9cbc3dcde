package room

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// item is one mount of the room.
type item struct {
	target string
	tree   int
	file   bool
}

// Build builds the room in the mount namespace of the calling process, which
// must have been started with [Namespaces], and moves the process into it:
// afterwards nothing of the host can be reached but what the room shows. It
// says what is missing. Every descriptor that it opened is closed, and so are
// those of the Mounts.
func (r *Room) Build() (missing []string, err error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("separate mounts from the host's: %w", err)
	}
	// Sources first: what is mounted next may hide them.
	items, missing, err := r.items()
	defer func() {
		for _, it := range items {
			unix.Close(it.tree)
		}
	}()
	if err != nil {
		return nil, err
	}
	root, err := newFS("tmpfs", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, "mode=0755", "size=4m", "nr_inodes=16k")
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	// Any directory of the host will do; it is out of sight a moment later.
	if err := unix.MoveMount(root, "", unix.AT_FDCWD, "/usr", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, fmt.Errorf("attach new root: %w", err)
	}
	if err := r.furnish(root); err != nil {
		return nil, err
	}
	for _, it := range items {
		if err := it.attach(root); err != nil {
			return nil, err
		}
	}
	if err := r.protect(root); err != nil {
		return nil, err
	}
	return missing, enter(root)
}

func (it item) attach(root int) error {
	at, err := place(root, it.target, it.file)
	if err != nil {
		return err
	}
	defer unix.Close(at)
	return attach(it.tree, at, it.target)
}

// items opens all mounts, parents before what lies below them.
func (r *Room) items() (items []item, missing []string, err error) {
	add := func(target string, file bool, tree int, err error) error {
		if err == nil {
			items = append(items, item{target, tree, file})
		}
		return err
	}
	for _, m := range append(slices.Clone(r.ReadOnly), r.Project) {
		tree, err := m.open()
		if err := add(m.Path, false, tree, err); err != nil {
			return items, nil, err
		}
	}
	for _, p := range systemDirs() {
		tree, err := Mount{Path: p.path}.open()
		if err := add(p.path, p.file, tree, err); err != nil {
			return items, nil, err
		}
	}
	if r.Network {
		for _, p := range networkDirs() {
			tree, err := Mount{Path: p.path}.open()
			if err := add(p.path, p.file, tree, err); err != nil {
				return items, nil, err
			}
		}
	}
	for _, d := range devices {
		tree, err := Detach("/dev/" + d)
		if err := add("/dev/"+d, true, tree, err); err != nil {
			return items, nil, err
		}
	}
	const plain = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	tmp, err := newFS("tmpfs", plain, "mode=1777", fmt.Sprintf("size=%d", r.TmpBytes), fmt.Sprintf("nr_inodes=%d", r.TmpFiles))
	if err := add("/tmp", false, tmp, err); err != nil {
		return items, nil, err
	}
	shm, err := newFS("tmpfs", plain|unix.MOUNT_ATTR_NOEXEC, "mode=1777", fmt.Sprintf("size=%d", r.ShmBytes), fmt.Sprintf("nr_inodes=%d", r.TmpFiles))
	if err := add("/dev/shm", false, shm, err); err != nil {
		return items, nil, err
	}
	proc, err := newFS("proc", plain|unix.MOUNT_ATTR_NOEXEC, "subset=pid", "hidepid=2")
	switch {
	case errors.Is(err, unix.EPERM):
		// Parts of the host's own /proc are masked, as container engines do:
		// then no namespace may show it whole.
		missing = append(missing, MissingProc)
	case err != nil:
		return items, nil, err
	default:
		items = append(items, item{"/proc", proc, false})
	}
	return inOrder(items), missing, nil
}

// inOrder sorts parents before children, and keeps of several mounts at one
// place the first.
func inOrder(items []item) []item {
	slices.SortStableFunc(items, func(a, b item) int { return strings.Compare(a.target, b.target) })
	kept := items[:0]
	for _, it := range items {
		if n := len(kept); n > 0 && kept[n-1].target == it.target {
			unix.Close(it.tree)
			continue
		}
		kept = append(kept, it)
	}
	return kept
}

// open gives the mount, detached and restricted.
func (m Mount) open() (int, error) {
	if m.FD != 0 {
		return m.FD, nil
	}
	tree, err := Detach(m.Path)
	if err != nil {
		return -1, err
	}
	if err := Restrict(tree, m.Writable); err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("%s: %w", m.Path, err)
	}
	return tree, nil
}

// enter makes the new root the process's root, drops the host's and seals it.
func enter(root int) error {
	if err := unix.Fchdir(root); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("exchange root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop the host's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return fmt.Errorf("enter new root: %w", err)
	}
	seal := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(root, "", unix.AT_EMPTY_PATH, &seal); err != nil {
		return fmt.Errorf("seal new root: %w", err)
	}
	if err := unix.Sethostname([]byte("sandbox")); err != nil {
		return fmt.Errorf("set host name: %w", err)
	}
	return nil
}
