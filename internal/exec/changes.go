package exec

import (
	"context"

	"github.com/toolworker/toolworker/internal/sandbox/changes"
	"github.com/toolworker/toolworker/internal/tool"
)

// runObserved runs the task and notes what a tool in a container that may
// write changed in the project, however it ended; on the host the sandbox
// does. Only a project that is mounted into the container shows anything.
// What cannot be looked at is said to be incomplete: it is no reason to fail
// a tool that has run.
func (x *execution) runObserved(ctx context.Context) (*Ending, error) {
	if !x.task.Writes || x.task.Resolution.Resolved == tool.Host {
		return x.backend.Run(ctx, &x.task)
	}
	before, err := changes.Take(x.task.Root, changes.Limits{})
	if err == nil {
		defer func() { _ = before.Close() }()
	}
	ending, runErr := x.backend.Run(ctx, &x.task)
	switch {
	case runErr != nil || ending.StartError != "" || ending.Changes != nil:
	case err != nil:
		ending.ChangesTruncated = true
	default:
		list, cut, err := before.Since()
		ending.Changes, ending.ChangesTruncated = list, cut || err != nil
	}
	return ending, runErr
}
