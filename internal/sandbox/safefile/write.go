package safefile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY

// Write puts what src gives, at most maxSize bytes, at a name: all of it or
// nothing, and on disk when it returns. The file has mode 0600, missing
// directories are made with 0700, and both belong to the owner of the root
// where the process may give them away. A symlink, directory or special file
// at the name is refused; a regular one is replaced.
func (r *Root) Write(name string, src io.Reader, maxSize int64) (Sum, error) {
	parts, err := split(name)
	if err != nil {
		return Sum{}, err
	}
	dir, err := r.makeDirs(parts[:len(parts)-1])
	if err != nil {
		return Sum{}, explain("write", name, err)
	}
	defer dir.Close()
	sum, err := r.replace(dir, parts[len(parts)-1], src, maxSize)
	if err != nil {
		return Sum{}, explain("write", name, err)
	}
	return sum, nil
}

// replace writes to a temporary name in dir and renames it to base.
func (r *Root) replace(dir *os.File, base string, src io.Reader, maxSize int64) (sum Sum, err error) {
	at := int(dir.Fd())
	if err := replaceable(at, base); err != nil {
		return Sum{}, err
	}
	temp := ".toolworker-" + rand.Text()
	fd, err := retry(func() (int, error) {
		return unix.Openat(at, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return Sum{}, fmt.Errorf("create temporary file: %w", err)
	}
	f := os.NewFile(uintptr(fd), temp)
	defer func() {
		f.Close()
		if err != nil {
			_ = unix.Unlinkat(at, temp, 0)
		}
	}()
	if err := f.Chmod(0o600); err != nil { // whatever the umask was
		return Sum{}, err
	}
	if err := r.give(fd); err != nil {
		return Sum{}, err
	}
	if sum, err = copyCounted(f, src, maxSize); err != nil {
		return Sum{}, err
	}
	if err := f.Sync(); err != nil {
		return Sum{}, err
	}
	if err := unix.Renameat(at, temp, at, base); err != nil {
		return Sum{}, err
	}
	if err := dir.Sync(); err != nil {
		return Sum{}, err
	}
	return sum, nil
}

// replaceable refuses early, with a clear word, what rename would replace or
// choke on. A race is harmless: rename follows nothing.
func replaceable(dir int, base string) error {
	var st unix.Stat_t
	switch err := unix.Fstatat(dir, base, &st, unix.AT_SYMLINK_NOFOLLOW); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return ErrSymlink
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return ErrNotRegular
	}
	return nil
}

// makeDirs opens the directory parts below the root, making what is missing.
func (r *Root) makeDirs(parts []string) (*os.File, error) {
	for depth := 0; depth <= len(parts); depth++ {
		at, err := r.openDir(parts[:depth])
		if err != nil {
			return nil, err
		}
		if depth == len(parts) {
			return at, nil
		}
		err = unix.Mkdirat(int(at.Fd()), parts[depth], 0o700)
		if err == nil {
			err = r.adopt(parts[:depth+1])
		}
		at.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
	}
	panic("unreachable")
}

func (r *Root) openDir(parts []string) (*os.File, error) {
	if len(parts) == 0 {
		parts = []string{"."}
	}
	fd, err := r.open(parts, dirFlags)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), join(parts)), nil
}

// adopt sets mode and owner of a directory just made.
func (r *Root) adopt(parts []string) error {
	dir, err := r.openDir(parts)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Chmod(0o700); err != nil {
		return err
	}
	return r.give(int(dir.Fd()))
}

// give makes the root's owner the owner of fd where that is somebody else. A
// process that may not (no CAP_CHOWN, an owner outside of its user namespace)
// keeps the file itself.
func (r *Root) give(fd int) error {
	if os.Geteuid() != 0 || r.uid == 0 && r.gid == 0 {
		return nil
	}
	err := unix.Fchown(fd, r.uid, r.gid)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	return err
}
