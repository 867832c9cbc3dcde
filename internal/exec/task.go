package exec

import (
	"encoding/json"

	"github.com/toolworker/toolworker/internal/tool"
)

// Task is one execution, ready to run: the environment is resolved, the
// guards have passed, paths are mapped and the limits in force are computed.
type Task struct {
	Request    *tool.Request
	Definition *tool.Definition // nil for inline code
	Project    *tool.Project
	Resolution tool.Resolution

	// Root is the host-side sandbox root: absolute, symlinks resolved.
	Root string
	// Exactly one of Argv and Code is set. Code is Python and Name its name.
	Argv []string
	Code string
	Name string
	// Input is the input object as the tool sees it, paths mapped.
	Input json.RawMessage
	// Env is the whole environment of the tool, "NAME=value".
	Env []string
	// Writes: the project is writable for this execution, but for Protect.
	Writes  bool
	Protect []string // relative to Root
	Network bool
	// Isolation is the least level accepted on the host.
	Isolation tool.Isolation
	Limits    tool.Limits
	Outputs   []Output
	// Live receives output as it arrives, nil when nobody asked. It must not
	// keep p. offset counts the raw bytes of that stream before p.
	Live func(stream string, offset int64, p []byte)
}

// Output is a file that the request wants back.
type Output struct {
	HostPath      string // absolute, below Root
	ContainerPath string // "" on the host
}
