package exec

import (
	"context"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// Measured counts every execution that came to an answer.
func Measured(next Executor, m *trace.Metrics) Executor { return measured{next, m} }

type measured struct {
	next    Executor
	metrics *trace.Metrics
}

func (d measured) Execute(ctx context.Context, r *tool.Request) *tool.Result {
	res := d.next.Execute(ctx, r)
	if res.Fault == nil {
		d.metrics.Executed(ctx, r, res, 0)
	}
	return res
}
