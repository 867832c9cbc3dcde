package safefile

import (
	"golang.org/x/sys/unix"
)

// mountID tells mounts apart: by the kernel's id where it gives one, by the
// device number elsewhere, which takes a bind mount of the same file system
// for the directory that it hides.
type mountID struct {
	known bool
	id    uint64
	dev   uint64
}

func mountOf(fd int, st *unix.Stat_t) mountID {
	m := mountID{dev: uint64(st.Dev)}
	var x unix.Statx_t
	if err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &x); err == nil && x.Mask&unix.STATX_MNT_ID != 0 {
		m.known, m.id = true, x.Mnt_id
	}
	return m
}

// walk does what openat2 does, one component at a time.
func (r *Root) walk(parts []string, flags int) (int, error) {
	return r.from(func(root int) (int, error) {
		dir := root
		for i, part := range parts {
			last := i == len(parts)-1
			how := unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
			if last {
				how = flags | alwaysFlags
			}
			fd, err := retry(func() (int, error) { return unix.Openat(dir, part, how, 0) })
			err = blame(dir, part, err)
			if dir != root {
				unix.Close(dir)
			}
			if err != nil {
				return -1, err
			}
			if err := r.sameMount(fd); err != nil {
				unix.Close(fd)
				return -1, err
			}
			dir = fd
		}
		return dir, nil
	})
}

// blame: O_DIRECTORY with O_NOFOLLOW says "not a directory" of a symlink.
func blame(dir int, part string, err error) error {
	var st unix.Stat_t
	if err == unix.ENOTDIR && unix.Fstatat(dir, part, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.ELOOP
	}
	return err
}

// sameMount refuses what lies on another mount.
func (r *Root) sameMount(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	m := mountOf(fd, &st)
	if m.known && r.mount.known && m.id != r.mount.id || m.dev != r.mount.dev {
		return unix.EXDEV
	}
	return nil
}
