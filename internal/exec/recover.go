package exec

import (
	"context"
	"log/slog"

	"github.com/sourcegraph/conc/panics"

	"github.com/toolworker/toolworker/internal/tool"
)

// Recovered answers a request whose execution panicked with internal, and
// logs the panic under the reference that the answer names.
func Recovered(next Executor, log *slog.Logger) Executor { return recovered{next, log} }

type recovered struct {
	next Executor
	log  *slog.Logger
}

func (d recovered) Execute(ctx context.Context, r *tool.Request) (res *tool.Result) {
	var catcher panics.Catcher
	catcher.Try(func() { res = d.next.Execute(ctx, r) })
	caught := catcher.Recovered()
	if caught == nil {
		return res
	}
	res = newResult(r)
	res.Error = internalError()
	d.log.ErrorContext(ctx, "execution panicked", "request", r.ID, "project", r.Project, "tool", r.Name(),
		"error", res.Error.Message, "panic", caught.Value, "stack", string(caught.Stack))
	return res
}
