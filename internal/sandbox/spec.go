package sandbox

import (
	"context"
	"io"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// Spec is one process tree to run confined.
type Spec struct {
	// Project is the key under which warm interpreters are kept; never
	// shared with another project.
	Project string
	// Exactly one of Argv and Code is set. Code is Python source, Name what
	// its tracebacks call it.
	Argv []string
	Code []byte
	Name string
	// Input is the stdin of a command, the JSON of input_data for Code.
	Input []byte
	// Env is the whole environment, "NAME=value".
	Env []string
	// Root is the project directory, also the working directory: visible at
	// its own absolute path, read-only unless Writable.
	Root     string
	Writable bool
	Protect  []string // relative to Root, read-only always
	// ReadOnly are further host directories that the process sees.
	ReadOnly []string
	Network  bool
	// Least is the weakest level accepted; Run refuses to go below it.
	Least  tool.Isolation
	Limits tool.Limits
	// Stdout and Stderr receive the output of a command as it arrives. For
	// Code both sys.stdout and sys.stderr go to Stdout, in the order
	// written, and Stderr is not used. They never block for long, and their
	// errors are ignored: what they do not want is drained and discarded.
	Stdout, Stderr io.Writer
}

// Exit is how the process tree of a Spec ended. Nothing of it is alive any more.
type Exit struct {
	// StartError says why nothing was started (command not found, not
	// executable, isolation refused); "" when something was.
	StartError string
	Code       int    // exit code, 128 + n for signal n
	Signal     string // "SIGKILL"; "" when it exited by itself
	TimedOut   bool
	// Hit is the code of the limit that was hit (tool.OutOfMemory,
	// tool.TooManyProcesses, tool.LimitExceeded) or tool.SandboxViolation;
	// HitName names the limit or the call.
	Hit     tool.Code
	HitName string
	// Value is the JSON of the variable result, nil when unassigned;
	// ValueError says why it has none. Both come from the untrusted side:
	// bounded and checked here, not trusted.
	Value      []byte
	ValueError string

	// Warm: a process that was ready ran it. Nothing else tells.
	Warm             bool
	Duration         time.Duration
	Changes          []tool.Change
	ChangesTruncated bool
	Usage            tool.Usage
	Sandbox          tool.SandboxMetadata
}

// Runner runs confined processes. An error is a fault of the machine or of
// the configuration, never of the code that was to run. When ctx is
// cancelled the whole tree is killed and Run returns soon after with an Exit
// that says Signal SIGKILL.
type Runner interface {
	Run(ctx context.Context, s *Spec) (*Exit, error)
	// Close ends every process that the runner holds ready. It is idempotent.
	Close() error
}
