package exec

import (
	"context"
	"errors"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/exec/policy"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// execution is one request on its way through the pipeline.
type execution struct {
	*pipeline
	request *tool.Request
	result  *tool.Result

	catalogue  *catalog.Snapshot
	definition *tool.Definition // nil for inline code
	project    *tool.Project
	backend    Backend
	root       root
	task       Task
	ending     *Ending
}

func (x *execution) run(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != nil {
		return interruption(cause)
	}
	if err := x.stage(ctx, trace.SpanResolve, x.resolve); err != nil {
		return err
	}
	if err := x.stage(ctx, trace.SpanMapPaths, x.mapPaths); err != nil {
		return err
	}
	err := x.stage(ctx, trace.SpanExec, x.exec)
	if x.ending == nil {
		return err
	}
	return x.stage(ctx, trace.SpanSync, func(ctx context.Context) error { return x.sync(ctx, err) })
}

// stage runs one stage in its span.
func (x *execution) stage(ctx context.Context, name string, f func(context.Context) error) error {
	ctx, span := x.Spans.Stage(ctx, name)
	defer span.End()
	err := f(ctx)
	if err != nil {
		trace.Fail(span, tool.AsError(err).Code)
	}
	return err
}

// resolve finds the tool and the project, chooses the environment and checks
// everything that needs no file.
func (x *execution) resolve(ctx context.Context) error {
	if err := x.find(ctx); err != nil {
		return err
	}
	r, d := x.request, x.definition
	resolution := Resolve(r, d, x.project)
	x.task.Resolution, x.result.Metadata.Environment = resolution, &resolution
	var err error
	if x.backend, err = x.pipeline.backend(resolution.Resolved, x.project); err != nil {
		return err
	}
	if err := policy.Check(r, d, x.project, resolution.Resolved, x.HostIsolation); err != nil {
		return err
	}
	limits := policy.InForce(r, d, x.project, x.Maximum)
	x.task.Limits, x.result.Metadata.Limits = limits.Limits, &limits
	if err := guardSource(r, d); err != nil {
		return err
	}
	if err := guardWrites(r, capability(r, d).Writes, x.project); err != nil {
		return err
	}
	if err := x.catalogue.InputSchema(r.Tool).CheckInput(r.Input); err != nil {
		return err
	}
	return nil
}

// find looks the tool and the project up in one state of the catalogue.
func (x *execution) find(ctx context.Context) error {
	x.catalogue = x.Catalogue.Snapshot()
	var err error
	if x.project, err = lookUp(ctx, x, catalog.KindProject, x.request.Project, (*catalog.Snapshot).Project); err != nil {
		return err
	}
	if x.project == nil {
		return tool.Errorf(tool.UnknownProject, "project %q is not in the catalogue", x.request.Project)
	}
	if x.request.Tool == "" {
		return nil
	}
	if x.definition, err = lookUp(ctx, x, catalog.KindTool, x.request.Tool, (*catalog.Snapshot).Tool); err != nil {
		return err
	}
	if x.definition == nil {
		return tool.Errorf(tool.UnknownTool, "tool %q is not in the catalogue", x.request.Tool)
	}
	return nil
}

// lookUp returns nil for what is not in the catalogue.
func lookUp[T any](ctx context.Context, x *execution, kind catalog.Kind, name string, get func(*catalog.Snapshot, string) (*T, bool)) (*T, error) {
	if found, ok := get(x.catalogue, name); ok {
		return found, nil
	}
	again, err := x.Catalogue.LookUp(ctx, kind, name)
	if err != nil {
		return nil, backendFault(ctx, err)
	}
	x.catalogue = again
	found, _ := get(again, name)
	return found, nil
}

// exec runs the task and says how it ended. x.ending is nil afterwards when
// there is nothing to tell but the error.
func (x *execution) exec(ctx context.Context) error {
	ending, err := x.runObserved(ctx)
	if err != nil {
		return backendFault(ctx, err)
	}
	x.describe(ctx, ending)
	err = outcome(ctx, &x.task, ending)
	var own *tool.Error
	if err != nil && !errors.As(err, &own) {
		ending.close()
		return err
	}
	x.ending = ending
	return err
}

// close gives back what the execution held; the result's contents stay.
func (x *execution) close() {
	if x.root.Root != nil {
		_ = x.root.Close()
	}
}
