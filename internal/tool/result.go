package tool

import "time"

// Result is the one answer to a request. A nil payload is an absent member.
type Result struct {
	RequestID string
	Project   string
	PlanID    string
	Tool      string
	Error     *Error // nil exactly when the tool succeeded
	Output    *Payload
	Value     *Payload
	Stdout    *Payload
	Stderr    *Payload
	Truncated bool
	Duration  time.Duration // wall clock of the execution
	Attempt   int           // starts that ended or were lost, this one included; 0 when it never ran
	Worker    string
	Files     []File
	Changes   []Change
	// ChangesTruncated: there were more changes than are listed.
	ChangesTruncated bool
	Metadata         Metadata

	// Fault is set when no answer could be found: the infrastructure failed
	// (*Fault) or the worker is draining (ErrDrained). The message is then
	// given back and this result is published only once attempts are used up.
	Fault error
}

// Status is the status that the error gives.
func (r *Result) Status() Status {
	if r.Error == nil {
		return StatusSucceeded
	}
	return r.Error.Code.Status()
}

// Close frees the contents of the payloads. It is idempotent.
func (r *Result) Close() {
	for _, p := range []*Payload{r.Output, r.Value, r.Stdout, r.Stderr} {
		if p != nil && p.Content != nil {
			_ = p.Content.Close()
		}
	}
}

// File is one member of a request's outputs, verified on the host.
type File struct {
	ContainerPath string `json:"container_path,omitzero"` // only where the tool ran in a container
	HostPath      string `json:"host_path"`
	SizeBytes     int64  `json:"size_bytes"`
	SHA256        string `json:"sha256"` // lower-case hex
}

// Change is one path that an execution created, modified or deleted.
type Change struct {
	Path   string `json:"path"` // relative to the root, slash-separated
	Change string `json:"change"`
}

// The kinds of change.
const (
	Created  = "created"
	Modified = "modified"
	Deleted  = "deleted"
)

// Ref says where a large member of a result went.
type Ref struct {
	Object    string `json:"object"` // name in the payload store: <project>/<request id>/<member>
	SizeBytes int64  `json:"size_bytes"`
	SHA256    string `json:"sha256"` // lower-case hex
}

// Metadata is how and where a request was executed. Nil members are absent.
type Metadata struct {
	Environment *Resolution        `json:"environment,omitzero"`
	Container   *ContainerMetadata `json:"container,omitzero"`
	Process     *ProcessMetadata   `json:"process,omitzero"`
	Sandbox     *SandboxMetadata   `json:"sandbox,omitzero"`
	Limits      *LimitsInForce     `json:"limits,omitzero"`
	Usage       *Usage             `json:"usage,omitzero"`
	QueuedMS    float64            `json:"queued_ms,omitzero"`
}

// ContainerMetadata is in every result of a container execution, success or not.
type ContainerMetadata struct {
	ContainerID     string  `json:"container_id"`
	Image           string  `json:"image"`
	WorkspaceFolder string  `json:"workspace_folder"`
	ExecTimeMS      float64 `json:"exec_time_ms"`
	ExitCode        int     `json:"exit_code"`
	TimedOut        bool    `json:"timed_out"`
	// Mode is how the tool was run: "agent", or the weaker "exec".
	Mode string `json:"mode,omitzero"`
}

// ProcessMetadata is how the process ended.
type ProcessMetadata struct {
	ExitCode int    `json:"exit_code"` // 128 + n for signal n, -1 when it was not started
	Signal   string `json:"signal"`    // "SIGKILL", "" when it exited by itself
	TimedOut bool   `json:"timed_out"`
}

// SandboxMetadata is how the process was confined.
type SandboxMetadata struct {
	Isolation  Isolation `json:"isolation"`
	Mechanisms []string  `json:"mechanisms"`
	Missing    []string  `json:"missing"`
}

// Usage is what the process tree used. Zero members were not measured.
type Usage struct {
	CPUMS       float64 `json:"cpu_ms,omitzero"`
	MaxRSSBytes int64   `json:"max_rss_bytes,omitzero"`
	PIDsPeak    int64   `json:"pids_peak,omitzero"`
}
