package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestOutcome(t *testing.T) {
	limits := tool.Limits{TimeoutSeconds: 1.5, MemoryBytes: 1024, PIDs: 16, CPUSeconds: 0.5, FileSizeBytes: 4096, OpenFiles: 8}
	long := strings.Repeat("x", 5000) + "END \n\t"
	for _, test := range []struct {
		name    string
		ending  Ending
		cause   error
		code    tool.Code // "" is success
		message string    // of the host; "Execution" becomes "Container execution"
		fault   error
	}{
		{name: "success"},
		{name: "a limit that was hit but mattered not", ending: Ending{Hit: tool.TooManyProcesses}},
		{name: "exit", ending: Ending{ExitCode: 3, Stderr: tool.Bytes("  bad\n \n")}, code: tool.ExitStatus,
			message: "Execution failed (exit code 3):   bad"},
		{name: "exit, nothing said", ending: Ending{ExitCode: 1, Stderr: tool.Bytes("")}, code: tool.ExitStatus,
			message: "Execution failed (exit code 1): "},
		{name: "exit, much said", ending: Ending{ExitCode: 1, Stderr: tool.Bytes(long)}, code: tool.ExitStatus,
			message: "Execution failed (exit code 1): " + strings.Repeat("x", 4096-6) + "END"},
		{name: "exit of code", ending: Ending{ExitCode: 1, Combined: tool.Bytes("out\nTraceback\n")}, code: tool.ExitStatus,
			message: "Execution failed (exit code 1): out\nTraceback"},
		{name: "signal", ending: Ending{ExitCode: 139, Signal: "SIGSEGV", Stderr: tool.Bytes("\xff")}, code: tool.ExitStatus,
			message: "Execution failed (exit code 139): \uFFFD"},
		{name: "not started", ending: Ending{StartError: "no such command"}, code: tool.StartFailed,
			message: "Execution failed (exit code -1): no such command"},
		{name: "timeout", ending: Ending{ExitCode: 137, Signal: "SIGKILL", TimedOut: true}, code: tool.TimedOut,
			message: "Execution timed out after 1.5s"},
		{name: "timeout, exit 0 while it was killed", ending: Ending{TimedOut: true}, code: tool.TimedOut,
			message: "Execution timed out after 1.5s"},
		{name: "timeout before a limit", ending: Ending{ExitCode: 137, Signal: "SIGKILL", TimedOut: true, Hit: tool.OutOfMemory}, code: tool.TimedOut,
			message: "Execution timed out after 1.5s"},
		{name: "timeout before a cancellation", ending: Ending{ExitCode: 137, Signal: "SIGKILL", TimedOut: true}, cause: tool.ErrCancelled, code: tool.TimedOut,
			message: "Execution timed out after 1.5s"},
		{name: "memory", ending: Ending{ExitCode: 137, Signal: "SIGKILL", Hit: tool.OutOfMemory}, code: tool.OutOfMemory,
			message: "Execution hit its memory limit of 1024 bytes (exit code 137)"},
		{name: "processes", ending: Ending{ExitCode: 1, Hit: tool.TooManyProcesses}, code: tool.TooManyProcesses,
			message: "Execution hit its limit of processes of 16 (exit code 1)"},
		{name: "cpu", ending: Ending{ExitCode: 152, Signal: "SIGXCPU", Hit: tool.LimitExceeded, HitName: "cpu_seconds"}, code: tool.LimitExceeded,
			message: "Execution hit its limit cpu_seconds of 0.5 s (exit code 152)"},
		{name: "file size", ending: Ending{ExitCode: 153, Signal: "SIGXFSZ", Hit: tool.LimitExceeded, HitName: "file_size_bytes"}, code: tool.LimitExceeded,
			message: "Execution hit its limit file_size_bytes of 4096 bytes (exit code 153)"},
		{name: "open files", ending: Ending{ExitCode: 1, Hit: tool.LimitExceeded, HitName: "open_files"}, code: tool.LimitExceeded,
			message: "Execution hit its limit open_files of 8 (exit code 1)"},
		{name: "violation", ending: Ending{ExitCode: 159, Signal: "SIGSYS", Hit: tool.SandboxViolation, HitName: "ptrace"}, code: tool.SandboxViolation,
			message: "Execution violated its sandbox: ptrace"},
		{name: "cancelled", ending: Ending{ExitCode: 137, Signal: "SIGKILL"}, cause: tool.ErrCancelled, code: tool.Cancelled},
		{name: "cancelled before the start", ending: Ending{StartError: "context canceled"}, cause: tool.ErrCancelled, code: tool.Cancelled},
		{name: "cancelled when it was over", cause: tool.ErrCancelled},
		{name: "cancelled when it had failed", ending: Ending{ExitCode: 2, Stderr: tool.Bytes("e")}, cause: tool.ErrCancelled, code: tool.ExitStatus,
			message: "Execution failed (exit code 2): e"},
		{name: "drained", ending: Ending{ExitCode: 137, Signal: "SIGKILL"}, cause: tool.ErrDrained, fault: tool.ErrDrained},
		{name: "drained when it was over", cause: tool.ErrDrained},
		{name: "interrupted by something else", ending: Ending{ExitCode: 137, Signal: "SIGKILL"}, cause: context.DeadlineExceeded, fault: context.DeadlineExceeded},
		{name: "no value", ending: Ending{ValueError: "NaN"}, code: tool.InvalidOutput},
		{name: "no value, and failed", ending: Ending{ExitCode: 1, ValueError: "NaN"}, code: tool.ExitStatus,
			message: "Execution failed (exit code 1): "},
	} {
		for _, environment := range []tool.Environment{tool.Host, tool.Container} {
			t.Run(fmt.Sprintf("%s on %s", test.name, environment), func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if test.cause != nil {
					cancel(test.cause)
				}
				task := &Task{Limits: limits, Resolution: tool.Resolution{Resolved: environment}}
				err := outcome(ctx, task, &test.ending)
				switch {
				case test.fault != nil:
					if !errors.Is(err, test.fault) {
						t.Errorf("got %v, want %v", err, test.fault)
					}
					return
				case test.code == "":
					if err != nil {
						t.Errorf("got %v, want success", err)
					}
					return
				}
				want := test.message
				if environment == tool.Container {
					want = strings.Replace(want, "Execution", "Container execution", 1)
				}
				if e := errorOf(t, err); e.Code != test.code || want != "" && e.Message != want {
					t.Errorf("got %v, want %s: %s", e, test.code, want)
				}
			})
		}
	}
}

func TestShortestSeconds(t *testing.T) {
	for seconds, want := range map[float64]string{1: "1", 1.5: "1.5", 120: "120", 0.25: "0.25", 0.001: "0.001", 1e7: "10000000"} {
		if got := shortest(seconds); got != want {
			t.Errorf("%v: got %s, want %s", seconds, got, want)
		}
	}
}

func TestBackendFault(t *testing.T) {
	broken := errors.New("engine unreachable")
	cancelled := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		return ctx
	}
	var fault *tool.Fault
	if err := backendFault(t.Context(), broken); !errors.As(err, &fault) || !errors.Is(err, broken) {
		t.Errorf("got %v, want a fault", err)
	}
	if err := backendFault(t.Context(), tool.Errorf(tool.StartFailed, "x")); errorOf(t, err).Code != tool.StartFailed {
		t.Errorf("got %v", err)
	}
	if e := errorOf(t, backendFault(cancelled(tool.ErrCancelled), broken)); e.Code != tool.Cancelled {
		t.Errorf("cancelled meanwhile: got %v", e)
	}
	if err := backendFault(cancelled(tool.ErrDrained), broken); !errors.Is(err, tool.ErrDrained) {
		t.Errorf("drained meanwhile: got %v", err)
	}
}
