// Package exec turns a request into a result: resolve, guard, map paths,
// run, map back, sync. Backends that run a process live below it.
package exec

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// Executor answers a request. It always gives a result: failure is data.
type Executor interface {
	Execute(ctx context.Context, r *tool.Request) *tool.Result
}

// Backend runs tasks in one environment. It ends the task's whole process
// tree before it returns, also when ctx is cancelled (context.Cause says by
// whom). An error is a fault of the infrastructure, never of the tool: a
// process that could not be started is an Ending.
type Backend interface {
	Run(ctx context.Context, t *Task) (*Ending, error)
}

// Syncer is implemented by backends whose tools write where the host does not
// see it. Sync brings the outputs of a task to their places on the host; it is
// called after a Run that succeeded. An error is a *tool.Error (sync_failed)
// about the file, or a *tool.Fault.
type Syncer interface {
	Sync(ctx context.Context, t *Task) error
}

// Ending is how a process ended and what it left behind.
type Ending struct {
	// StartError says why nothing was started; "" when something was.
	StartError string
	ExitCode   int    // 128 + n for signal n
	Signal     string // "SIGKILL"; "" when it exited by itself
	TimedOut   bool
	// Hit is OutOfMemory, TooManyProcesses or LimitExceeded when that limit
	// was hit, SandboxViolation when the kernel ended it for a forbidden
	// call; HitName names the limit or the call.
	Hit     tool.Code
	HitName string

	// Commands leave Stdout and Stderr, inline code Combined and a Value.
	Stdout, Stderr, Combined tool.Content
	Truncated                bool
	Value                    json.RawMessage // nil when unassigned
	ValueError               string          // why the value has no strict JSON form

	Duration         time.Duration
	Changes          []tool.Change
	ChangesTruncated bool
	Usage            tool.Usage
	Sandbox          *tool.SandboxMetadata
	Container        *tool.ContainerMetadata
}
