package exec

import (
	"context"
	"errors"
	"log/slog"

	"github.com/toolworker/toolworker/internal/tool"
)

// Logged logs every execution for debugging, and as an error what the worker
// or its machine is to blame for, under the reference that a planner may be
// given. Inputs, outputs, code and environment values are never logged.
func Logged(next Executor, log *slog.Logger) Executor { return logged{next, log} }

type logged struct {
	next Executor
	log  *slog.Logger
}

func (d logged) Execute(ctx context.Context, r *tool.Request) *tool.Result {
	log := d.log.With("request", r.ID, "project", r.Project, "tool", r.Name())
	log.DebugContext(ctx, "execution begins")
	res := d.next.Execute(ctx, r)
	level, message := slog.LevelDebug, "execution ended"
	attrs := []slog.Attr{slog.String("status", string(res.Status())), slog.Duration("duration", res.Duration)}
	if e := res.Metadata.Environment; e != nil {
		attrs = append(attrs, slog.String("environment", string(e.Resolved)), slog.String("decided_by", string(e.DecidedBy)))
	}
	if s := res.Metadata.Sandbox; s != nil {
		attrs = append(attrs, slog.String("isolation", string(s.Isolation)))
	}
	if p := res.Metadata.Process; p != nil {
		attrs = append(attrs, slog.Int("exit_code", p.ExitCode))
	}
	if res.Error != nil {
		attrs = append(attrs, slog.String("code", string(res.Error.Code)))
	}
	if res.Truncated {
		level, message = slog.LevelWarn, "output was truncated"
	}
	if res.Fault != nil {
		attrs = append(attrs, slog.String("error", res.Error.Message), slog.Any("fault", res.Fault))
		if level, message = slog.LevelInfo, "execution interrupted"; !errors.Is(res.Fault, tool.ErrDrained) {
			level, message = slog.LevelError, "execution failed for a fault of the infrastructure"
		}
	}
	log.LogAttrs(ctx, level, message, attrs...)
	return res
}
