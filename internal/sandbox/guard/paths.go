package guard

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
)

// maxLinks is how many symbolic links a path may go through, as in the kernel.
const maxLinks = 40

// Paths gives what must stay as it is for protected paths to stay as they are,
// slash-separated and relative to dir: every symbolic link on the way by its
// own name, and what the way leads to, which no link leads to any more. Of a
// way that leaves dir only the links are in dir.
func Paths(dir string, protect []string) ([]string, error) {
	if len(protect) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open project to guard it: %w", err)
	}
	defer func() { _ = root.Close() }()
	var all []string
	for _, p := range protect {
		w := way{root: root, dir: dir, left: strings.Split(path.Clean(p), "/")}
		if err := w.walk(); err != nil {
			return nil, fmt.Errorf("look at protected path %s: %w", p, err)
		}
		for _, found := range w.found {
			if !slices.Contains(all, found) {
				all = append(all, found)
			}
		}
	}
	return all, nil
}

// way is one path that is being walked.
type way struct {
	root  *os.Root
	dir   string
	at    string   // where it stands, "" for the root; without links
	left  []string // components to go
	links int
	found []string
}

func (w *way) walk() error {
	for len(w.left) > 0 {
		part := w.left[0]
		w.left = w.left[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if w.at == "" {
				return nil
			}
			if w.at = path.Dir(w.at); w.at == "." {
				w.at = ""
			}
			continue
		}
		name := path.Join(w.at, part)
		st, err := w.root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			w.add(path.Join(append([]string{name}, w.left...)...))
			return nil
		case err != nil:
			return err
		case st.Mode()&fs.ModeSymlink == 0:
			w.at = name
		default:
			w.add(name)
			if inside, err := w.follow(name); err != nil || !inside {
				return err
			}
		}
	}
	w.add(w.at)
	return nil
}

// add notes a path, unless it is the root or outside of it.
func (w *way) add(name string) {
	if name != "" && name != "." && name != ".." && !strings.HasPrefix(name, "../") {
		w.found = append(w.found, name)
	}
}

// follow puts a link's target before what is left; inside is false when the
// way leaves the root, or has no end.
func (w *way) follow(name string) (inside bool, err error) {
	if w.links++; w.links > maxLinks {
		return false, nil
	}
	target, err := w.root.Readlink(name)
	if err != nil {
		return false, err
	}
	if path.IsAbs(target) {
		below, ok := strings.CutPrefix(path.Clean(target)+"/", path.Clean(w.dir)+"/")
		if !ok {
			return false, nil
		}
		w.at, target = "", below
	}
	w.left = append(strings.Split(target, "/"), w.left...)
	return true, nil
}
