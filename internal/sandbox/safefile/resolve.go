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
	w := walker{root: r, dir: -1, left: components(name)}
	defer w.stand(-1)
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
	dir     int      // where names lead; -1: the root's own descriptor
	missing []string // from the first component on that does not exist or is no directory
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
	fd, err := w.look(part)
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
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		w.names = append(w.names, part)
		w.stand(fd)
		return nil
	case unix.S_IFLNK:
		err = w.follow(fd)
	default:
		w.missing = append(w.missing, part)
	}
	unix.Close(fd)
	return err
}

// look opens a component of the directory at hand, a symlink itself.
func (w *walker) look(part string) (int, error) {
	open := func(dir int) (int, error) {
		return retry(func() (int, error) {
			return unix.Openat(dir, part, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
	}
	if w.dir >= 0 {
		return open(w.dir)
	}
	return w.root.from(open)
}

// up goes to the parent directory.
func (w *walker) up() error {
	switch {
	case len(w.missing) > 0:
		return fmt.Errorf("%q: .. below what is no directory: %w", join(append(w.names, w.missing...)), ErrEscape)
	case len(w.names) == 0:
		return fmt.Errorf("%w %s", ErrEscape, w.root.path)
	}
	// From the root again: the parent of a directory that was moved meanwhile
	// could be anywhere.
	w.names = w.names[:len(w.names)-1]
	if len(w.names) == 0 {
		w.stand(-1)
		return nil
	}
	fd, err := w.root.open(w.names, unix.O_PATH)
	if err != nil {
		return err
	}
	w.stand(fd)
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
		w.names = nil
		w.stand(-1)
		target = below
	}
	w.left = slices.Concat(components(target), w.left)
	return nil
}

// stand makes fd the directory at hand.
func (w *walker) stand(fd int) {
	if w.dir >= 0 {
		unix.Close(w.dir)
	}
	w.dir = fd
}
