package exec

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// maxOutputFile bounds an output where no file_size_bytes is in force, in bytes.
	maxOutputFile = 1 << 30
	// lastPatience is how long what has run to its end may still take to be
	// answered after somebody cancelled it, or the worker is to stop.
	lastPatience = 500 * time.Millisecond
)

// errSlow: the outputs took longer to read than the tool may take to run.
var errSlow = errors.New("outputs are too large to be read in time")

// verifyFiles hashes the outputs, which lie on the host. Each is opened below
// the root without following anything, so that the tool cannot make it mean
// another file. To make a large file takes a tool no time, and to read it may
// take long: all of them together get as much as the tool itself.
func (x *execution) verifyFiles(ctx context.Context) error {
	if len(x.task.Outputs) == 0 {
		return nil
	}
	most := x.task.Limits.FileSizeBytes
	if most == 0 {
		most = maxOutputFile
	}
	reading, cancel := patient(ctx, x.task.Limits.Timeout())
	defer cancel(nil)
	for i, output := range x.task.Outputs {
		rel := strings.TrimPrefix(output.HostPath, x.task.Root+"/")
		sum, err := x.root.Copy(untilDone{reading}, rel, most)
		switch cause := context.Cause(reading); {
		case err != nil && errors.Is(cause, errSlow):
			return tool.Errorf(tool.SyncFailed, "/outputs/%d: cannot be read within %ss", i, shortest(x.task.Limits.TimeoutSeconds))
		case err != nil && cause != nil:
			return interruption(cause)
		case err != nil:
			return tool.Errorf(tool.SyncFailed, "/outputs/%d: %v", i, err)
		}
		x.result.Files = append(x.result.Files, tool.File{
			ContainerPath: output.ContainerPath,
			HostPath:      path.Join(x.root.given, rel),
			SizeBytes:     sum.Size,
			SHA256:        sum.SHA256,
		})
	}
	return nil
}

// patient is a context that ends errSlow after limit, if there is one, and a
// little later than ctx, with the same cause.
func patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelCauseFunc) {
	later, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	if limit > 0 {
		slow := time.AfterFunc(limit, func() { cancel(errSlow) })
		context.AfterFunc(later, func() { slow.Stop() })
	}
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(lastPatience, func() { cancel(context.Cause(ctx)) })
	})
	context.AfterFunc(later, func() { stop() })
	return later, cancel
}

// untilDone takes everything until its context ends.
type untilDone struct{ ctx context.Context }

func (u untilDone) Write(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return len(p), nil
}
