package safefile

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	resolveFlags = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV
	// alwaysFlags: nothing is followed, nothing blocks (a fifo without a
	// writer, a device), nothing becomes the controlling terminal.
	alwaysFlags = unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
)

// walkOnly is set once openat2 turned out to be missing or forbidden.
var walkOnly atomic.Bool

// open opens parts below the directory dir.
func (r *Root) open(parts []string, flags int) (int, error) {
	if !walkOnly.Load() {
		fd, err := r.open2(join(parts), flags)
		// EPERM is what a container's seccomp filter says to calls that it
		// does not know; opening for reading has no other reason to.
		if err == unix.ENOSYS || err == unix.EPERM {
			walkOnly.Store(true)
		} else if err != unix.ENOTDIR {
			return fd, err
		}
		// ENOTDIR is also said of a symlink where O_DIRECTORY is asked for:
		// the walk tells them apart.
	}
	return r.walk(parts, flags)
}

func (r *Root) open2(name string, flags int) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | alwaysFlags), Resolve: resolveFlags}
	if flags&unix.O_PATH != 0 {
		how.Flags &^= unix.O_NONBLOCK | unix.O_NOCTTY // invalid beside O_PATH
	}
	return r.from(func(root int) (int, error) {
		for attempt := 0; ; attempt++ {
			fd, err := unix.Openat2(root, name, &how)
			if err == unix.EINTR || err == unix.EAGAIN && attempt < 100 {
				continue
			}
			return fd, err
		}
	})
}

// from calls f with the root's descriptor, which stays open meanwhile.
func (r *Root) from(f func(root int) (int, error)) (fd int, err error) {
	raw, err := r.dir.SyscallConn()
	if err != nil {
		return -1, err
	}
	if controlErr := raw.Control(func(root uintptr) { fd, err = f(int(root)) }); controlErr != nil {
		return -1, os.ErrClosed
	}
	return fd, err
}

// explain turns the kernel's word for a refusal into ours, with the name.
func explain(verb, name string, err error) error {
	var reason error
	switch {
	case errors.Is(err, unix.ELOOP):
		reason = ErrSymlink
	case errors.Is(err, unix.EXDEV):
		reason = ErrMount
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR):
		reason = ErrNotRegular // a socket, a fifo without a reader; a directory
	default:
		return fmt.Errorf("%s %q: %w", verb, name, err)
	}
	return fmt.Errorf("%s %q: %w", verb, name, reason)
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if err != unix.EINTR {
			return n, err
		}
	}
}

func isClosed(err error) bool { return errors.Is(err, os.ErrClosed) }
