package tool

import "time"

// Limits bounds one execution. A zero member is not set: in a request, a
// tool or a project it means "no wish"; in the limits in force it means "not
// limited".
type Limits struct {
	TimeoutSeconds float64 `json:"timeout_seconds,omitzero" yaml:"timeout_seconds,omitempty"`
	MaxOutputBytes int64   `json:"max_output_bytes,omitzero" yaml:"max_output_bytes,omitempty"`
	MemoryBytes    int64   `json:"memory_bytes,omitzero" yaml:"memory_bytes,omitempty"`
	CPUs           float64 `json:"cpus,omitzero" yaml:"cpus,omitempty"`
	CPUSeconds     float64 `json:"cpu_seconds,omitzero" yaml:"cpu_seconds,omitempty"`
	PIDs           int64   `json:"pids,omitzero" yaml:"pids,omitempty"`
	FileSizeBytes  int64   `json:"file_size_bytes,omitzero" yaml:"file_size_bytes,omitempty"`
	OpenFiles      int64   `json:"open_files,omitzero" yaml:"open_files,omitempty"`
}

// Timeout is TimeoutSeconds as a duration; 0 when not set.
func (l Limits) Timeout() time.Duration {
	return time.Duration(l.TimeoutSeconds * float64(time.Second))
}

// LimitsInForce are the limits that an execution ran under, and the names of
// those that the maximum of the project or of the worker lowered.
type LimitsInForce struct {
	Limits
	Clamped []string `json:"clamped"`
}
