package exec

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// PathMapper translates paths between the host and a container. It works on
// the text alone and touches no file system: whether a path may be used is
// the guard's business. It is safe for concurrent use.
//
// A path is below a root when its lexically cleaned form is the root itself
// or begins with the root and a slash: /srv/p/project-1 does not hold
// /srv/p/project-10. What follows the root is kept as it was written, and
// what is not below the root is returned unchanged.
type PathMapper struct {
	host, container string
}

// ErrNUL is why a path with a NUL is refused, wherever it stands.
var ErrNUL = errors.New("a path may not hold a NUL")

// NewPathMapper returns the mapper between two roots. A root is an absolute
// path in its shortest form, without trailing slash, and not "/": that would
// map every absolute path.
func NewPathMapper(hostRoot, containerRoot string) (*PathMapper, error) {
	if err := checkRoot("host root", hostRoot); err != nil {
		return nil, err
	}
	if err := checkRoot("container root", containerRoot); err != nil {
		return nil, err
	}
	return &PathMapper{host: hostRoot, container: containerRoot}, nil
}

func checkRoot(what, root string) error {
	switch {
	case strings.IndexByte(root, 0) >= 0:
		return fmt.Errorf("%s: %w", what, ErrNUL)
	case root == "/" || root == "//":
		return fmt.Errorf("%s %q: would map every absolute path", what, root)
	case !path.IsAbs(root) || path.Clean(root) != root:
		return fmt.Errorf("%s %q: expected an absolute path without trailing slash, \".\", \"..\" or \"//\"", what, root)
	}
	return nil
}

// HostToContainer gives the container's name for a host path. The error is ErrNUL.
func (m *PathMapper) HostToContainer(p string) (string, error) {
	return translate(p, m.host, m.container)
}

// ContainerToHost gives the host's name for a container path. The error is ErrNUL.
func (m *PathMapper) ContainerToHost(p string) (string, error) {
	return translate(p, m.container, m.host)
}

func translate(p, from, to string) (string, error) {
	mapped, _, err := reroot(p, from, to)
	if err == nil && strings.IndexByte(p, 0) >= 0 {
		err = ErrNUL
	}
	if err != nil {
		return "", err
	}
	return mapped, nil
}

// reroot replaces from by to at the beginning of a path or file: URL, and
// reports whether it did. A path below from with a NUL gives ErrNUL; any
// other text may hold what it likes.
func reroot(s, from, to string) (string, bool, error) {
	rest, ok := cutRoot(s, from)
	if ok {
		s = to + rest
	} else if u, isURL := parseFileURL(s); isURL {
		if rest, ok = u.cutRoot(from); ok {
			s = u.prefix + (&url.URL{Path: to}).EscapedPath() + rest
			rest = u.decoded
		}
	}
	if ok && strings.IndexByte(rest, 0) >= 0 {
		return "", false, ErrNUL
	}
	return s, ok, nil
}

// cutRoot returns what follows root in an absolute path below it: as written
// where root is written out and never left again, else in its cleaned form.
func cutRoot(s, root string) (string, bool) {
	if !strings.HasPrefix(s, "/") {
		return "", false
	}
	if rest, ok := strings.CutPrefix(s, root); ok && startsElement(rest) && !climbs(rest) {
		return rest, true
	}
	rest, ok := strings.CutPrefix(path.Clean(s), root)
	return rest, ok && startsElement(rest)
}

func startsElement(rest string) bool { return rest == "" || rest[0] == '/' }

// climbs reports whether the ".." elements of rest lead above its start at any point.
func climbs(rest string) bool {
	depth := 0
	for element := range strings.SplitSeq(rest, "/") {
		switch element {
		case "", ".":
		case "..":
			if depth--; depth < 0 {
				return true
			}
		default:
			depth++
		}
	}
	return false
}
