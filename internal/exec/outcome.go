package exec

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/tool"
)

// stderrInError is how much of stderr an error text carries, in bytes.
const stderrInError = 4 << 10

// outcome says how an execution ended: nil when the tool succeeded, else a
// *tool.Error, a *tool.Fault or tool.ErrDrained. It is the only place that
// knows. In doubt the first that happened wins:
//
//   - what never started has no other story, unless it was stopped;
//   - the kernel's verdict on a forbidden call ended it before anything else could;
//   - then the timeout, which kills;
//   - then a cancellation or a drain, if what ended it was a kill: a process
//     that came to its end by itself keeps its own ending;
//   - then a limit that was hit, if it failed;
//   - then its exit code, and last a value that has no JSON form.
func outcome(ctx context.Context, t *Task, e *Ending) error {
	killed := e.Signal == "SIGKILL" || e.StartError != ""
	failed := e.ExitCode != 0 || e.Signal != ""
	switch stopped := context.Cause(ctx); {
	case stopped != nil && e.StartError != "":
		return interruption(stopped)
	case e.StartError != "":
		return failure(tool.StartFailed, t, "failed (exit code -1): %s", e.StartError)
	case e.Hit == tool.SandboxViolation:
		return failure(tool.SandboxViolation, t, "violated its sandbox: %s", e.HitName)
	case e.TimedOut:
		return failure(tool.TimedOut, t, "timed out after %ss", shortest(t.Limits.TimeoutSeconds))
	case stopped != nil && killed:
		return interruption(stopped)
	case e.Hit != "" && failed:
		return limitHit(t, e)
	case failed:
		stderr, err := stderrTail(e)
		if err != nil {
			return err
		}
		return failure(tool.ExitStatus, t, "failed (exit code %d): %s", e.ExitCode, stderr)
	case e.ValueError != "":
		return tool.Errorf(tool.InvalidOutput, "result has no strict JSON form: %s", e.ValueError)
	}
	return nil
}

// interruption is what the cause of a cancelled context means for a request.
func interruption(cause error) error {
	switch {
	case errors.Is(cause, tool.ErrCancelled):
		return tool.Errorf(tool.Cancelled, "the request was cancelled")
	case errors.Is(cause, tool.ErrDrained):
		return tool.ErrDrained
	}
	return &tool.Fault{Err: fmt.Errorf("execution interrupted: %w", cause)}
}

// backendFault is what an error of a backend means, in a context that may
// have been cancelled meanwhile.
func backendFault(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return interruption(cause)
	}
	var fault *tool.Fault
	var refused *tool.Error
	if errors.As(err, &fault) || errors.As(err, &refused) {
		return err
	}
	return &tool.Fault{Err: err}
}

// failure words an error as protocol section 5 asks: "Execution ..." on the
// host, "Container execution ..." in a container.
func failure(code tool.Code, t *Task, format string, args ...any) *tool.Error {
	subject := "Execution "
	if t.Resolution.Resolved == tool.Container {
		subject = "Container execution "
	}
	return tool.Errorf(code, subject+format, args...)
}

func limitHit(t *Task, e *Ending) error {
	how := fmt.Sprintf("(exit code %d)", e.ExitCode)
	switch e.Hit {
	case tool.OutOfMemory:
		return failure(e.Hit, t, "hit its memory limit%s %s", bound(t.Limits.MemoryBytes, " bytes"), how)
	case tool.TooManyProcesses:
		return failure(e.Hit, t, "hit its limit of processes%s %s", bound(t.Limits.PIDs, ""), how)
	}
	value := ""
	switch e.HitName {
	case "cpu_seconds":
		value = " of " + shortest(t.Limits.CPUSeconds) + " s"
	case "file_size_bytes":
		value = bound(t.Limits.FileSizeBytes, " bytes")
	case "open_files":
		value = bound(t.Limits.OpenFiles, "")
	}
	return failure(e.Hit, t, "hit its limit %s%s %s", e.HitName, value, how)
}

func bound(limit int64, unit string) string {
	if limit == 0 {
		return ""
	}
	return " of " + strconv.FormatInt(limit, 10) + unit
}

// shortest writes a number of seconds in its shortest form: 1, 1.5.
func shortest(seconds float64) string { return strconv.FormatFloat(seconds, 'f', -1, 64) }

// stderrTail is the end of stderr for an error text. Inline code has its two
// streams as one, which ends in the traceback.
func stderrTail(e *Ending) (string, error) {
	stream := e.Stderr
	if stream == nil {
		stream = e.Combined
	}
	if stream == nil {
		return "", nil
	}
	tail, err := capture.Tail(stream, stderrInError)
	if err != nil {
		return "", &tool.Fault{Err: err}
	}
	return strings.TrimRight(tail, " \t\r\n\v\f"), nil
}
