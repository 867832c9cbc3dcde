package tool

import "encoding/json"

// Definition is one tool of the catalogue. Exactly one of Command and Code is set.
type Definition struct {
	Name        string
	Description string
	Disabled    bool
	// Source is "custom"; other sources are refused with their name.
	Source  string
	Command []string
	Code    string
	// Dir is the directory of the catalogue entry, "" for entries of a bucket:
	// relative files of Command are those beside the entry, and the directory
	// is visible, read-only, to the tool.
	Dir string
	// InputSchema and OutputSchema are JSON Schemas, nil when not given.
	InputSchema  json.RawMessage
	OutputSchema json.RawMessage
	Capability   Capability
	ToolEnv      Environment
	// Environments are those where the tool may run; empty means all.
	Environments []Environment
	Isolation    Isolation
	// NotIdempotent tools are never started twice.
	NotIdempotent bool
	Env           map[string]string
	EnvFrom       []string // names taken from the worker's environment
	Limits        Limits
	Concurrency   int // at most so many at once per worker; 0: no bound of its own
}
