package safefile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxSymlinks is how many symlinks a path may go through, as in the kernel.
const maxSymlinks = 40

// Resolve says where a path leads, as the kernel would walk it: symlinks are
// followed and ".." goes up from where they led, but never out of the root.
// path is absolute and below the root, or relative to it. The answer is
// relative to the root, without symlinks, "." and "..", and "." for the root
// itself; of a path that does not exist it is where it would be created. It
// was true when it was asked and promises nothing for later: enforcement is
// the sandbox's.
func (r *Root) Resolve(path string) (string, error) {
	name, err := r.Relative(path)
	if err != nil {
		return "", err
	}
	w := walker{root: r, left: components(name)}
	defer w.close()
	for len(w.left) > 0 {
		if err := w.step(); err != nil {
			return "", explain("resolve", path, err)
		}
	}
	return join(append(w.names, w.missing...)), nil
}

// walker stands in a directory below the root and has components left to go.
type walker struct {
	root    *Root
	names   []string // the way from the root
	fds     []int    // a descriptor for each of names
	missing []string // components below a name that does not exist or is no directory
	left    []string
	links   int
}

func (w *walker) step() error {
	part := w.left[0]
	w.left = w.left[1:]
	switch {
	case part == "..":
		return w.up()
	case len(w.missing) > 0:
		w.missing = append(w.missing, part)
		return nil
	}
	return w.root.at(w.fds, func(dir int) error {
		fd, err := retry(func() (int, error) {
			return unix.Openat(dir, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
			w.missing = append(w.missing, part)
			return nil
		}
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil {
			unix.Close(fd)
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			w.names, w.fds = append(w.names, part), append(w.fds, fd)
			return nil
		}
		defer unix.Close(fd)
		return w.follow(fd)
	})
}

// up goes to the parent directory.
func (w *walker) up() error {
	switch {
	case len(w.missing) > 0:
		return fmt.Errorf("%q: .. below what is no directory: %w", join(append(w.names, w.missing...)), ErrEscape)
	case len(w.names) == 0:
		return fmt.Errorf("%w %s", ErrEscape, w.root.path)
	}
	last := len(w.names) - 1
	unix.Close(w.fds[last])
	w.names, w.fds = w.names[:last], w.fds[:last]
	return nil
}

// follow puts the target of a symlink before what is left.
func (w *walker) follow(fd int) error {
	if w.links++; w.links > maxSymlinks {
		return fmt.Errorf("more than %d symlinks: %w", maxSymlinks, ErrEscape)
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return err
	}
	target := string(buf[:n])
	if strings.HasPrefix(target, "/") {
		below, err := w.root.Relative(target)
		if err != nil {
			return fmt.Errorf("symlink to %w", err)
		}
		w.close()
		target = below
	}
	w.left = slices.Concat(components(target), w.left)
	return nil
}

// close goes back to the root.
func (w *walker) close() {
	for _, fd := range w.fds {
		unix.Close(fd)
	}
	w.names, w.fds = nil, nil
}

// at calls f with the innermost directory of fds, or the root's.
func (r *Root) at(fds []int, f func(dir int) error) error {
	if len(fds) > 0 {
		return f(fds[len(fds)-1])
	}
	_, err := r.from(func(root int) (int, error) { return root, f(root) })
	return err
}
