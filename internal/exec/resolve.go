package exec

import "github.com/toolworker/toolworker/internal/tool"

// Resolve walks the chain of protocol section 4: the request's own choice or
// else the tool's, then the plan's, then the project's, then the host.
// d is nil for inline code.
func Resolve(r *tool.Request, d *tool.Definition, p *tool.Project) tool.Resolution {
	own := r.ToolEnv
	if own == "" && d != nil {
		own = d.ToolEnv
	}
	switch {
	case own != "":
		return tool.Resolution{Resolved: own, DecidedBy: tool.DecidedByTool}
	case r.Plan.ExecutionEnvironment != "":
		return tool.Resolution{Resolved: r.Plan.ExecutionEnvironment, DecidedBy: tool.DecidedByPlan}
	case p.ExecutionEnvironment != "":
		return tool.Resolution{Resolved: p.ExecutionEnvironment, DecidedBy: tool.DecidedByProject}
	}
	return tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedBySystem}
}

// backend is the backend of the environment that was resolved, or why there
// is none for this project.
func (p *pipeline) backend(e tool.Environment, project *tool.Project) (Backend, error) {
	switch {
	case e == tool.Host:
		return p.Host, nil
	case p.Container == nil:
		return nil, tool.Errorf(tool.EnvironmentUnavailable, "container execution is not available")
	case len(project.Resources) == 0:
		return nil, tool.Errorf(tool.EnvironmentUnavailable,
			"container execution needs a container resource, and none is linked to project %q", project.ID)
	}
	return p.Container, nil
}
