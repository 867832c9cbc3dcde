package changes

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// look is what one walk over the tree found.
type look struct {
	// dirs has the complete listings, sorted by name, by the directory's path:
	// "" for the root, else with a slash at its end.
	dirs map[string][]entry
	cut  bool // some directories are missing or incomplete
}

type entry struct {
	name  string
	stamp stamp
}

// stamp is what makes two looks at a name see the same thing.
type stamp struct {
	ino          uint64
	mode         uint32
	size         int64
	mtime, ctime unix.Timespec
}

func (s *stamp) isDir() bool { return s.mode&unix.S_IFMT == unix.S_IFDIR }

// walk is a look being taken.
type walk struct {
	look
	limits  Limits
	dev     uint64
	seen    int
	stopped bool
	until   time.Time
}

func take(root *os.File, l Limits) (*look, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(root.Fd()), &st); err != nil {
		return nil, fmt.Errorf("stat directory %s: %w", root.Name(), err)
	}
	w := &walk{
		look:   look{dirs: map[string][]entry{}},
		limits: l, dev: uint64(st.Dev), until: time.Now().Add(l.Time),
	}
	if err := w.dir(int(root.Fd()), ".", "", 1); err != nil {
		return nil, fmt.Errorf("read directory %s: %w", root.Name(), err)
	}
	return &w.look, nil
}

// dir lists the directory name of at, and those below it. Its error says that
// this one cannot be read.
func (w *walk) dir(at int, name, path string, depth int) error {
	fd, err := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) { // O_NOATIME is for the owner
		fd, err = unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(fd), name)
	defer d.Close()
	list, err := w.list(d, fd)
	if err != nil {
		return err
	}
	if w.stopped {
		return nil
	}
	w.dirs[path] = list
	for _, e := range list {
		if !e.stamp.isDir() {
			continue
		}
		// Gone, unreadable or replaced meanwhile: nothing is known of it.
		if depth >= w.limits.Depth || w.dir(fd, e.name, path+e.name+"/", depth+1) != nil {
			w.cut = true
		}
		if w.stopped {
			return nil
		}
	}
	return nil
}

// list reads one directory, sorted by name.
func (w *walk) list(d *os.File, fd int) ([]entry, error) {
	var list []entry
	for {
		names, err := d.Readdirnames(512)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if w.seen += len(names); w.seen > w.limits.Entries || time.Now().After(w.until) {
			w.cut, w.stopped = true, true
			return nil, nil
		}
		for _, name := range names {
			var st unix.Stat_t
			if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // gone already
			}
			if uint64(st.Dev) != w.dev {
				continue // another mount
			}
			list = append(list, entry{name, stamp{st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim}})
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, nil
}
