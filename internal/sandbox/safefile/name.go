package safefile

import (
	"fmt"
	"slices"
	"strings"
)

// split gives the components of a name, refusing what is no name.
func split(name string) ([]string, error) {
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%q: %w", name, ErrName)
	}
	parts := strings.Split(name, "/")
	for _, p := range parts {
		if p == "" || p == "." || p == ".." {
			return nil, fmt.Errorf("%q: %w", name, ErrName)
		}
	}
	return parts, nil
}

// Relative gives the part of an absolute host path that lies below the root,
// "." for the root itself: by components, so that /p/project-10 is not below
// /p/project-1. The root may be called by the path it was opened with or by
// its resolved one. Components "." are dropped; ".." stay, for Resolve.
// A relative path is returned as it is, with "." dropped.
func (r *Root) Relative(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%q: %w", path, ErrName)
	}
	parts := components(path)
	if !strings.HasPrefix(path, "/") {
		return join(parts), nil
	}
	for _, root := range r.names {
		if len(parts) >= len(root) && slices.Equal(parts[:len(root)], root) {
			return join(parts[len(root):]), nil
		}
	}
	return "", fmt.Errorf("%q: %w %s", path, ErrEscape, r.path)
}

// components are those of a path, without the empty ones and ".".
func components(path string) []string {
	var parts []string
	for p := range strings.SplitSeq(path, "/") {
		if p != "" && p != "." {
			parts = append(parts, p)
		}
	}
	return parts
}

func join(parts []string) string {
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, "/")
}
