package guard

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
)

// Bounds of what is remembered of one protected path.
const (
	MaxBytes   = 16 << 20
	MaxEntries = 4096
)

// ErrTooLarge is given for a path that is too large to be remembered.
var ErrTooLarge = fmt.Errorf("more than %d bytes or %d entries: protect less, or run at isolation full", MaxBytes, MaxEntries)

// tree is a directory or file as it was.
type tree struct {
	entries []entry // parents before what lies in them
	bytes   int
}

type entry struct {
	name     string
	mode     fs.FileMode
	uid, gid int
	content  []byte // of a file; the target of a link
}

func remember(root *os.Root, p string) (*tree, error) {
	t := &tree{}
	if err := t.add(root, p); err != nil || len(t.entries) > 0 {
		return t, err
	}
	st, err := root.Lstat(p)
	if err != nil {
		return nil, err
	}
	t.entries = []entry{{name: p, mode: st.Mode(), uid: -1, gid: -1}}
	return t, nil
}

func (t *tree) add(root *os.Root, name string) error {
	st, err := root.Lstat(name)
	if err != nil {
		return err
	}
	e := entry{name: name, mode: st.Mode(), uid: -1, gid: -1}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		e.uid, e.gid = int(sys.Uid), int(sys.Gid)
	}
	switch {
	case st.Mode().IsRegular():
		if e.content, err = content(root, name, MaxBytes-t.bytes); err != nil {
			return err
		}
		t.bytes += len(e.content)
	case st.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		if err != nil {
			return err
		}
		e.content = []byte(target)
	case !st.IsDir():
		return nil // a device, socket or pipe holds nothing; they come and go
	}
	if t.entries = append(t.entries, e); len(t.entries) > MaxEntries {
		return ErrTooLarge
	}
	if !st.IsDir() {
		return nil
	}
	names, err := list(root, name)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := t.add(root, path.Join(name, n)); err != nil {
			return err
		}
	}
	return nil
}

// content reads a file of at most limit bytes.
func content(root *os.Root, name string, limit int) ([]byte, error) {
	// Another tool may put a pipe in its place at any moment.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s: no regular file any more", name))
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(limit)+1))
	if err == nil && len(b) > limit {
		return nil, ErrTooLarge
	}
	return b, err
}

func list(root *os.Root, name string) ([]string, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(MaxEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > MaxEntries {
		return nil, ErrTooLarge
	}
	return names, nil
}

// unchanged compares what is there now. What cannot be read now, or is too
// large now, has changed.
func (t *tree) unchanged(root *os.Root) bool {
	now, err := remember(root, t.entries[0].name)
	if err != nil || len(now.entries) != len(t.entries) {
		return false
	}
	was := map[string]entry{}
	for _, e := range t.entries {
		was[e.name] = e
	}
	for _, e := range now.entries {
		old, ok := was[e.name]
		if !ok || old.mode != e.mode || !bytes.Equal(old.content, e.content) {
			return false
		}
	}
	return true
}

// putBack makes it what it was. Nothing stands in its place.
func (t *tree) putBack(root *os.Root) error {
	if parent := path.Dir(t.entries[0].name); parent != "." {
		if err := root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	var errs []error
	for _, e := range t.entries {
		errs = append(errs, e.putBack(root))
	}
	// Directories last: one that may not be written could not be filled.
	for _, e := range slices.Backward(t.entries) {
		if e.mode.IsDir() {
			errs = append(errs, root.Chmod(e.name, e.mode.Perm()))
		}
	}
	return errors.Join(errs...)
}

func (e *entry) putBack(root *os.Root) error {
	switch {
	case e.mode.IsDir():
		if err := root.Mkdir(e.name, 0o700); err != nil {
			return err
		}
	case e.mode&fs.ModeSymlink != 0:
		if err := root.Symlink(string(e.content), e.name); err != nil {
			return err
		}
	case !e.mode.IsRegular():
		return nil // whoever it belongs to makes it anew
	default:
		f, err := root.OpenFile(e.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, e.mode.Perm())
		if err != nil {
			return err
		}
		_, err = f.Write(e.content)
		if err := errors.Join(err, f.Chmod(e.mode.Perm()), f.Close()); err != nil {
			return err
		}
	}
	if os.Geteuid() == 0 {
		return root.Lchown(e.name, e.uid, e.gid)
	}
	return nil
}
