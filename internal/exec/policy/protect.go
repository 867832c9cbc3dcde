package policy

import (
	"path"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// CheckOutput refuses an output that the project protects: one at or below a
// path of protect, or one that would take the place of a directory that has
// such a path in it. rel is slash-separated and relative to the root, links
// resolved.
func CheckOutput(p *tool.Project, rel string) *tool.Error {
	rel = path.Clean("/" + rel)
	for _, protected := range p.Protect {
		guarded := path.Clean("/" + protected)
		if within(rel, guarded) || within(guarded, rel) {
			return tool.Errorf(tool.Forbidden, "output %q: project %q protects %s", strings.TrimPrefix(rel, "/"), p.ID, protected)
		}
	}
	return nil
}

// within reports whether name is dir or lies below it.
func within(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir+"/")
}
