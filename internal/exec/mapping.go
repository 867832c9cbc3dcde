package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/toolworker/toolworker/internal/exec/policy"
	"github.com/toolworker/toolworker/internal/tool"
)

// mapPaths opens the sandbox root, checks every path of the request against
// it and completes the task as the tool is to see it.
func (x *execution) mapPaths(ctx context.Context) error {
	var err error
	if x.root, err = x.sandboxRoot(x.project); err != nil {
		return err
	}
	inContainer := x.task.Resolution.Resolved == tool.Container
	guard := pathGuard{root: x.root}
	if inContainer {
		guard.workspace = x.workspace()
	}
	if err := guard.check(x.request.Input); err != nil {
		return err
	}
	outputs, err := resolveOutputs(x.request, x.project, x.root, x.workspace(), inContainer)
	if err != nil {
		return err
	}
	input, err := x.mapInput(inContainer)
	if err != nil {
		return err
	}
	env, err := policy.Environ(x.definition, x.project, x.LookUpEnv)
	if err != nil {
		return failure(tool.StartFailed, &x.task, "failed (exit code -1): %v", err)
	}
	x.complete(ctx, input, env, outputs)
	return nil
}

// workspace is the project's root in its containers, as its first resource
// says, or as it would be.
func (x *execution) workspace() string {
	if len(x.project.Resources) > 0 {
		return cmp.Or(x.project.Resources[0].WorkspaceFolder, tool.DefaultWorkspaceFolder)
	}
	return tool.DefaultWorkspaceFolder
}

// mapInput gives the input as the tool sees it. On the host only a root that
// the operator named through a symlink has another name inside.
func (x *execution) mapInput(inContainer bool) (json.RawMessage, error) {
	to := x.root.Path()
	if inContainer {
		to = x.workspace()
	}
	input := x.request.Input
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	for _, from := range []string{x.root.given, x.root.Path()} {
		if from == to {
			continue
		}
		mapper, err := NewPathMapper(from, to)
		if err != nil {
			return nil, tool.Errorf(tool.EnvironmentUnavailable, "project %q: workspace_folder: %v", x.project.ID, err)
		}
		mapped, err := mapper.HostToContainerJSON(input)
		switch {
		case errors.Is(err, ErrNUL):
			return nil, tool.Errorf(tool.InvalidRequest, "/input%v", err)
		case err != nil:
			return nil, tool.Errorf(tool.InvalidRequest, "input: %v", err)
		}
		input = mapped
		if x.root.given == x.root.Path() {
			break
		}
	}
	return input, nil
}

// complete fills in what the backend needs beyond the environment and limits.
func (x *execution) complete(ctx context.Context, input json.RawMessage, env []string, outputs []Output) {
	r, d, t := x.request, x.definition, &x.task
	declared := capability(r, d)
	t.Request, t.Definition, t.Project = r, d, x.project
	t.Root, t.Input, t.Env, t.Outputs = x.root.Path(), input, env, outputs
	t.Writes, t.Protect = policy.Writes(declared.Writes, r, x.project), x.project.Protect
	t.Network = declared.Network
	t.Isolation = policy.Isolation(d, x.project, "")
	switch {
	case d == nil:
		t.Code, t.Name = r.Inline.Code, r.Name()
	case len(d.Command) > 0:
		t.Argv = d.Command
	default:
		t.Code, t.Name = d.Code, d.Name
	}
	if r.Stream && x.Live != nil {
		t.Live = x.Live(ctx, t.Resolution.Resolved)
	}
}
