package policy

import (
	"slices"

	"github.com/toolworker/toolworker/internal/tool"
)

// all in a list of names stands for every name.
const all = "*"

// Check reports what the catalogue does not allow as forbidden, with the name
// of the rule: the member of the entry that says so. It is asked once the
// environment is resolved, whatever the request asked for. d is nil for
// inline code; level is the isolation that the worker gives on the host.
func Check(r *tool.Request, d *tool.Definition, p *tool.Project, resolved tool.Environment, level tool.Isolation) *tool.Error {
	for _, check := range [...]func() *tool.Error{
		func() *tool.Error { return checkProject(r, p, resolved) },
		func() *tool.Error { return checkInline(r, d, p, resolved) },
		func() *tool.Error { return checkTool(d, p, resolved) },
		func() *tool.Error { return checkIsolation(d, p, resolved, level) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func checkProject(r *tool.Request, p *tool.Project, resolved tool.Environment) *tool.Error {
	switch {
	case p.Disabled:
		return tool.Errorf(tool.Forbidden, "project %q is not enabled", p.ID)
	case !allows(p.Allow.Pools, r.Pool):
		return refuse(p, "pools %q", r.Pool)
	case !slices.Contains(p.Allow.Environments, resolved):
		return refuse(p, "environments %s", resolved)
	}
	return nil
}

// checkInline is about code that a request brings along. Code of the
// catalogue is the operator's own.
func checkInline(r *tool.Request, d *tool.Definition, p *tool.Project, resolved tool.Environment) *tool.Error {
	if d != nil {
		return nil
	}
	var asked tool.Capability
	if r.Inline != nil {
		asked = r.Inline.Capability
	}
	allowed := p.Allow.Inline
	switch {
	case !allowed.Enabled:
		return refuse(p, "inline.enabled")
	case !slices.Contains(allowed.Environments, resolved):
		return refuse(p, "inline.environments %s", resolved)
	case asked.Writes && !allowed.Writes:
		return refuse(p, "inline.writes")
	case asked.Network && !allowed.Network:
		return refuse(p, "inline.network")
	}
	return nil
}

func checkTool(d *tool.Definition, p *tool.Project, resolved tool.Environment) *tool.Error {
	switch {
	case d == nil:
		return nil
	case d.Disabled:
		return tool.Errorf(tool.Forbidden, "tool %q is not enabled", d.Name)
	case !allows(p.Allow.Tools, d.Name):
		return refuse(p, "tools %q", d.Name)
	case len(d.Environments) > 0 && !slices.Contains(d.Environments, resolved):
		return tool.Errorf(tool.Forbidden, "tool %q does not allow environments %s", d.Name, resolved)
	}
	return nil
}

func checkIsolation(d *tool.Definition, p *tool.Project, resolved tool.Environment, level tool.Isolation) *tool.Error {
	if resolved != tool.Host {
		return nil
	}
	switch {
	case !level.AtLeast(p.Isolation):
		return tool.Errorf(tool.Forbidden, "project %q demands isolation %s, and the worker gives %s", p.ID, p.Isolation, given(level))
	case d != nil && !level.AtLeast(d.Isolation):
		return tool.Errorf(tool.Forbidden, "tool %q demands isolation %s, and the worker gives %s", d.Name, d.Isolation, given(level))
	}
	return nil
}

func given(level tool.Isolation) tool.Isolation {
	if level == "" {
		return tool.IsolationNone
	}
	return level
}

func refuse(p *tool.Project, rule string, args ...any) *tool.Error {
	return tool.Errorf(tool.Forbidden, "project %q does not allow "+rule, append([]any{p.ID}, args...)...)
}

func allows(names []string, name string) bool {
	return slices.Contains(names, all) || slices.Contains(names, name)
}

// Isolation is the least level at which an execution may run on the host: the
// strongest of what the tool, the project and the worker demand. d is nil for
// inline code.
func Isolation(d *tool.Definition, p *tool.Project, worker tool.Isolation) tool.Isolation {
	least := worker.Stronger(p.Isolation)
	if d != nil {
		least = least.Stronger(d.Isolation)
	}
	return least
}

// Writes reports whether the project is writable for an execution: the tool
// or the inline code declares it, and neither project nor plan is read-only.
// What is protected stays read-only even so.
func Writes(declared bool, r *tool.Request, p *tool.Project) bool {
	return declared && !p.ReadOnly && !r.Plan.ReadOnly
}
