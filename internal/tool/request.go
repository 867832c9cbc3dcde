package tool

import (
	"encoding/json"
	"time"
)

// Request is one decoded and validated tool request.
type Request struct {
	Envelope
	// Pool and Priority come from the subject the request was published to.
	Pool     string
	Priority Priority

	Project string
	// Exactly one of Tool (a name in the catalogue) and Inline is set.
	Tool   string
	Inline *Inline
	// Input is one JSON object, "{}" when the request has none. Its bytes are
	// kept as they were sent, so that numbers beyond 2^53 stay intact.
	Input json.RawMessage
	// ToolEnv is the request's own choice of environment.
	ToolEnv Environment
	Plan    Plan
	Limits  Limits
	// Outputs are host or container paths below the root.
	Outputs []string
	Retry   Retry
	// Stream asks for live events.
	Stream bool
}

// Envelope holds the CloudEvents attributes of a request that matter to its
// execution and to the events that answer it.
type Envelope struct {
	ID            string
	Source        string
	Time          time.Time // zero when the planner gave none
	CorrelationID string    // the request id when the planner gave none
	ExpiryTime    time.Time // zero: never
	TraceParent   string    // distributed tracing extension, carried unchanged
	TraceState    string
}

// Inline is source code that travels in the request.
type Inline struct {
	Name       string     `json:"name,omitzero"`
	Source     string     `json:"source,omitzero"`
	Code       string     `json:"code"`
	Capability Capability `json:"capability,omitzero"`
}

// Capability is what a tool declares to need beyond reading its project.
type Capability struct {
	Writes  bool `json:"writes,omitzero" yaml:"writes,omitempty"`
	Network bool `json:"network,omitzero" yaml:"network,omitempty"`
}

// Plan is what the request says about the plan it belongs to.
type Plan struct {
	ID                   string      `json:"id,omitzero"`
	ExecutionEnvironment Environment `json:"execution_environment,omitzero"`
	ReadOnly             bool        `json:"read_only,omitzero"`
}

// Retry says how often and how far apart a failed request is started again.
type Retry struct {
	MaxAttempts    int     `json:"max_attempts,omitzero"`
	BackoffSeconds float64 `json:"backoff_seconds,omitzero"`
}

// InlineName is the name of inline code that has none.
const InlineName = "inline"

// Name is the tool's name, the inline tool's name, or InlineName.
func (r *Request) Name() string {
	switch {
	case r.Tool != "":
		return r.Tool
	case r.Inline != nil && r.Inline.Name != "":
		return r.Inline.Name
	}
	return InlineName
}

// Expired reports whether the request may not be started any more at now.
func (r *Request) Expired(now time.Time) bool {
	return !r.ExpiryTime.IsZero() && !now.Before(r.ExpiryTime)
}
