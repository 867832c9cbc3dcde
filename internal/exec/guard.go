package exec

import (
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// servedSource is the only source of tools that is served.
const servedSource = "custom"

// guardSource refuses tools of other sources and inline code without code.
func guardSource(r *tool.Request, d *tool.Definition) error {
	source, code := "", ""
	switch {
	case d != nil:
		source, code = d.Source, d.Code
	case r.Inline != nil:
		source, code = r.Inline.Source, r.Inline.Code
	}
	if source != "" && source != servedSource {
		return tool.Errorf(tool.UnsupportedSource, "source %q is not supported: expected %q", source, servedSource)
	}
	if (d == nil || len(d.Command) == 0) && strings.TrimSpace(code) == "" {
		return tool.Errorf(tool.UnsupportedSource, "tool %q has no code", r.Name())
	}
	return nil
}

// guardWrites refuses what would write in a project or plan that is
// read-only, and outputs of a tool that does not write at all.
func guardWrites(r *tool.Request, writes bool, p *tool.Project) error {
	asks := "tool " + quote(r.Name()) + " declares capability.writes"
	if !writes {
		if len(r.Outputs) == 0 {
			return nil
		}
		asks = "outputs are asked for"
	}
	switch {
	case p.ReadOnly:
		return tool.Errorf(tool.ReadOnly, "%s, and project %q is read-only", asks, p.ID)
	case r.Plan.ReadOnly:
		return tool.Errorf(tool.ReadOnly, "%s, and the plan is read-only", asks)
	case !writes:
		return tool.Errorf(tool.InvalidRequest, "outputs: tool %q does not declare capability.writes", r.Name())
	}
	return nil
}

// capability is what the tool or the inline code declares.
func capability(r *tool.Request, d *tool.Definition) tool.Capability {
	switch {
	case d != nil:
		return d.Capability
	case r.Inline != nil:
		return r.Inline.Capability
	}
	return tool.Capability{}
}
