package tool

// Code says why a request did not succeed. The values are a contract with
// planners: they are only ever added to.
type Code string

// The codes.
const (
	InvalidRequest         Code = "invalid_request"
	UnknownTool            Code = "unknown_tool"
	UnknownProject         Code = "unknown_project"
	Forbidden              Code = "forbidden"
	UnsupportedSource      Code = "unsupported_source"
	InvalidInput           Code = "invalid_input"
	PathEscape             Code = "path_escape"
	ReadOnly               Code = "read_only"
	EnvironmentUnavailable Code = "environment_unavailable"
	TimedOut               Code = "timeout"
	ExitStatus             Code = "exit_status"
	StartFailed            Code = "start_failed"
	OutOfMemory            Code = "out_of_memory"
	TooManyProcesses       Code = "too_many_processes"
	LimitExceeded          Code = "limit_exceeded"
	SandboxViolation       Code = "sandbox_violation"
	InvalidOutput          Code = "invalid_output"
	SyncFailed             Code = "sync_failed"
	Cancelled              Code = "cancelled"
	Expired                Code = "expired"
	WorkerLost             Code = "worker_lost"
	Internal               Code = "internal"
)

// Status is the outcome of a request in one word. The values are a contract.
type Status string

// The statuses.
const (
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"    // it ran, or could not be run
	StatusRejected  Status = "rejected"  // the request is at fault and nothing ran
	StatusCancelled Status = "cancelled" // somebody asked for it
	StatusExpired   Status = "expired"   // its time had passed before it was started
)

// Status is the status of a result with this code; "" gives StatusSucceeded.
func (c Code) Status() Status {
	switch c {
	case "":
		return StatusSucceeded
	case InvalidRequest, UnknownTool, UnknownProject, Forbidden, UnsupportedSource,
		InvalidInput, PathEscape, ReadOnly, EnvironmentUnavailable:
		return StatusRejected
	case Cancelled:
		return StatusCancelled
	case Expired:
		return StatusExpired
	}
	return StatusFailed
}
