package room

import (
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// strict resolution follows no link that somebody may have planted.
const strict = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// Detach opens a copy of the mounts at and below dir that is attached nowhere
// yet. No part of the path may be a symbolic link.
func Detach(dir string) (int, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, dir, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: strict})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	return detachFD(fd, dir)
}

func detachFD(fd int, name string) (int, error) {
	tree, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, &os.PathError{Op: "detach mount", Path: name, Err: err}
	}
	return tree, nil
}

// Restrict makes every mount of a tree ignore setuid bits and devices and,
// unless writable, refuse writes.
func Restrict(tree int, writable bool) error {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if !writable {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("restrict mount: %w", err)
	}
	return nil
}

// Prepare opens the mount for a builder that could not: one that lacks the
// right to search the directories above. With a user namespace as owner, the
// one id that it maps stands for whoever owns the directory: what the builder's
// user may do there is what the owner may, and what it creates is the owner's.
// The caller needs CAP_SYS_ADMIN, and closes the descriptor.
func (m Mount) Prepare(owner int) (int, error) {
	tree, err := Detach(m.Path)
	if err != nil {
		return -1, err
	}
	if owner >= 0 {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(owner)}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			unix.Close(tree)
			return -1, &os.PathError{Op: "map the owner of", Path: m.Path, Err: err}
		}
	}
	if err := Restrict(tree, m.Writable); err != nil {
		unix.Close(tree)
		return -1, fmt.Errorf("%s: %w", m.Path, err)
	}
	return tree, nil
}

// newFS makes a detached mount of a new file system.
func newFS(kind string, attrs int, options ...string) (int, error) {
	ctx, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("open file system %s: %w", kind, err)
	}
	defer unix.Close(ctx)
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		if err := unix.FsconfigSetString(ctx, k, v); err != nil {
			return -1, fmt.Errorf("set option %s of %s: %w", o, kind, err)
		}
	}
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, fmt.Errorf("create file system %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return -1, fmt.Errorf("mount file system %s: %w", kind, err)
	}
	return fd, nil
}

// attach attaches a tree over an open place.
func attach(tree, place int, name string) error {
	if err := unix.MoveMount(tree, "", place, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return &os.PathError{Op: "attach mount", Path: name, Err: err}
	}
	return nil
}

// find opens what lies at rel below dir, following nothing.
func find(dir int, rel string) (int, error) {
	fd, err := unix.Openat2(dir, rel, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: strict | unix.RESOLVE_BENEATH,
	})
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: rel, Err: err}
	}
	return fd, nil
}

// place opens the directory, or file, at an absolute name of the new root,
// and makes what is missing on the way.
func place(root int, name string, file bool) (int, error) {
	rel := strings.TrimPrefix(path.Clean(name), "/")
	if rel == "" {
		return -1, fmt.Errorf("mount over the root of the sandbox")
	}
	if fd, err := find(root, rel); err == nil {
		return fd, nil
	}
	if err := makeDirs(root, path.Dir(rel)); err != nil {
		return -1, err
	}
	var err error
	if file {
		err = writeFile(root, rel, nil)
	} else {
		err = makeDirs(root, rel)
	}
	if err != nil {
		return -1, err
	}
	return find(root, rel)
}

func makeDirs(root int, rel string) error {
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' {
			continue
		}
		err := unix.Mkdirat(root, rel[:i], 0o755)
		if err != nil && err != unix.EEXIST && err != unix.EROFS {
			return &os.PathError{Op: "make directory", Path: "/" + rel[:i], Err: err}
		}
	}
	return nil
}

func writeFile(root int, rel string, data []byte) error {
	fd, err := unix.Openat(root, rel, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return &os.PathError{Op: "create", Path: "/" + rel, Err: err}
	}
	f := os.NewFile(uintptr(fd), rel)
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}
