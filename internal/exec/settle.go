package exec

import (
	"crypto/rand"
	"encoding/hex"
	"errors"

	"github.com/toolworker/toolworker/internal/tool"
)

// settle puts what ended an execution into its result; nil is success. What
// is neither the request's nor the tool's fault becomes result.Fault, with an
// error beside it for the case that no further attempt is made.
func settle(res *tool.Result, err error) {
	var own *tool.Error
	switch {
	case err == nil:
	case errors.Is(err, tool.ErrDrained):
		res.Fault = tool.ErrDrained
		res.Error = tool.Errorf(tool.Internal, "the worker shut down before the tool ended")
	case errors.As(err, &own):
		res.Error = own
	default:
		var fault *tool.Fault
		if !errors.As(err, &fault) {
			fault = &tool.Fault{Err: err}
		}
		res.Fault = fault
		res.Error = internalError()
	}
}

// internalError is what a planner is told of a fault of ours: a reference
// under which an operator finds the rest in the worker's log.
func internalError() *tool.Error {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails
	return tool.Errorf(tool.Internal, "internal error, see reference %s in the worker's log", hex.EncodeToString(random[:]))
}
