package exec

import (
	"fmt"
	"path"
	"strings"

	"github.com/toolworker/toolworker/internal/exec/policy"
	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/tool"
)

// resolveOutputs takes the outputs that a request asks for, by host, container
// or relative path, as files below the root. An error names every output that
// is not below it, or the first that is protected.
func resolveOutputs(r *tool.Request, p *tool.Project, root root, workspace string, inContainer bool) ([]Output, error) {
	resolved := make([]Output, 0, len(r.Outputs))
	if len(r.Outputs) == 0 {
		return resolved, nil
	}
	p, err := protecting(p, root)
	if err != nil {
		return nil, err
	}
	var nuls, escapes []string
	var protected error
	for i, name := range r.Outputs {
		if strings.IndexByte(name, 0) >= 0 {
			nuls = append(nuls, outputFault(i, name, holdsNUL))
			continue
		}
		rel, ok := relativeOutput(name, root, workspace)
		reason := outside
		if ok {
			var real string
			var err error
			if real, reason, err = root.locate(rel); err != nil {
				return nil, err
			}
			if reason == "" && (real == "." || rel == "") {
				reason = "is the sandbox root itself: expected a file below it"
			}
			if err := policy.CheckOutput(p, real); reason == "" && err != nil && protected == nil {
				protected = err
			}
		}
		if reason != "" {
			escapes = append(escapes, outputFault(i, name, reason))
			continue
		}
		output := Output{HostPath: root.Path() + "/" + rel}
		if inContainer {
			output.ContainerPath = workspace + "/" + rel
		}
		resolved = append(resolved, output)
	}
	switch {
	case len(nuls) > 0:
		return nil, tool.Errorf(tool.InvalidRequest, "%s", listed(nuls))
	case len(escapes) > 0:
		return nil, tool.Errorf(tool.PathEscape, "%s", listed(escapes))
	case protected != nil:
		return nil, protected
	}
	return resolved, nil
}

// protecting is the project with what its protected paths lead to protected as well.
func protecting(p *tool.Project, root root) (*tool.Project, error) {
	paths, err := guard.Paths(root.Path(), p.Protect)
	if err != nil {
		return nil, &tool.Fault{Err: err}
	}
	real := *p
	real.Protect = append(p.Protect[:len(p.Protect):len(p.Protect)], paths...)
	return &real, nil
}

// outputFault words what is wrong with one output.
func outputFault(i int, name, reason string) string {
	return fmt.Sprintf("/outputs/%d: %s %s", i, quote(name), reason)
}

// relativeOutput is the output's path below the root, "" for the root itself.
func relativeOutput(name string, root root, workspace string) (string, bool) {
	rest := name
	if path.IsAbs(name) {
		var ok bool
		if rest, ok = root.relative(name); !ok {
			if rest, ok = cutRoot(name, workspace); !ok {
				return "", false
			}
		}
	}
	if climbs(rest) {
		return "", false
	}
	return strings.TrimPrefix(path.Clean("/"+rest), "/"), true
}
