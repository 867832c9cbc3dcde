package guard

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Guard knows what the protected paths of a project were.
type Guard struct {
	dir   string
	all   []string
	paths []guarded
}

type guarded struct {
	path string
	// missing is the first part of the path that did not exist, "" when all
	// of it did.
	missing string
	before  *tree // nil where the kernel protects what exists
}

// look remembers the paths. With mounts, the kernel protects what exists, and
// only what does not and links, over which nothing is mounted, are guarded;
// without, what exists is remembered with its content.
func look(dir string, protect []string, mounts bool) (*Guard, error) {
	g := &Guard{dir: dir}
	var err error
	if g.all, err = Paths(dir, protect); err != nil || len(g.all) == 0 {
		return g, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open project to guard it: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, p := range g.all {
		one, err := remembered(root, p, mounts)
		if err != nil {
			return nil, fmt.Errorf("remember protected path %s: %w", p, err)
		}
		if one.missing != "" || one.before != nil {
			g.paths = append(g.paths, one)
		}
	}
	return g, nil
}

func remembered(root *os.Root, p string, mounts bool) (guarded, error) {
	one := guarded{path: p}
	var err error
	if one.missing, err = firstMissing(root, p); err != nil || one.missing != "" {
		return one, err
	}
	if mounts {
		st, err := root.Lstat(p)
		if err != nil || st.Mode()&fs.ModeSymlink == 0 {
			return one, err
		}
	}
	one.before, err = remember(root, p)
	return one, err
}

// restore undoes what was done to the paths. It gives the names under which it
// set things aside.
func (g *Guard) restore() (aside []string, err error) {
	if len(g.paths) == 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil, fmt.Errorf("open project to guard it: %w", err)
	}
	defer func() { _ = root.Close() }()
	var errs []error
	for _, p := range g.paths {
		name, err := p.restore(root)
		if err != nil {
			errs = append(errs, fmt.Errorf("restore protected path %s: %w", p.path, err))
		}
		if name != "" {
			aside = append(aside, name)
		}
	}
	return aside, errors.Join(errs...)
}

func (p *guarded) restore(root *os.Root) (aside string, err error) {
	var offender string
	if p.before == nil {
		offender = made(root, p.missing, p.path)
	} else {
		// Not by way of a link that was put there.
		if offender = made(root, "", p.path); offender == p.path && p.before.unchanged(root) {
			return "", nil
		}
	}
	if offender != "" {
		aside = offender + ".refused-" + strings.ToLower(rand.Text()[:8])
		if err := root.Rename(offender, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if p.before != nil {
		return aside, p.before.putBack(root)
	}
	return aside, nil
}

// firstMissing gives the shortest leading part of p that does not exist. Links
// are not followed: what lies behind one counts as missing.
func firstMissing(root *os.Root, p string) (string, error) {
	for _, part := range prefixes(p) {
		st, err := root.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return part, nil
		case err != nil:
			return "", err
		case part != p && !st.IsDir():
			return p, nil
		}
	}
	return "", nil
}

// made gives what stands for p now, from missing on: p itself, or something
// else than a directory on the way.
func made(root *os.Root, missing, p string) string {
	for _, part := range prefixes(p) {
		if len(part) < len(missing) {
			continue
		}
		st, err := root.Lstat(part)
		if err != nil {
			return ""
		}
		if part == p || !st.IsDir() {
			return part
		}
	}
	return ""
}

// prefixes of a/b/c are a, a/b and a/b/c.
func prefixes(p string) []string {
	var all []string
	for i := range len(p) {
		if p[i] == '/' {
			all = append(all, p[:i])
		}
	}
	return append(all, p)
}
