package agent

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// protocolVersion is raised when frames change their meaning.
	protocolVersion = 1

	// MaxSpec bounds the arguments, environment and settings of a run in
	// bytes, as JSON: about what the kernel lets a process be started with.
	MaxSpec = 2 << 20
	// MaxCode bounds the source of inline code in bytes.
	MaxCode = 64 << 20
	// MaxInput bounds the input of a run in bytes.
	MaxInput = 256 << 20
	// maxExit bounds an encoded exit: the value and the list of changes.
	maxExit = 64 << 20
	// window is how many bytes of output of a run may be under way before
	// its consumer has taken any.
	window = 256 << 10
)

// Hello is what the agent says of itself and of the container it is in.
type Hello struct {
	Version int    `json:"version"`
	Nonce   string `json:"nonce"` // as given when it was started: proof that nothing else answers
	Arch    string `json:"arch"`
	PID     int    `json:"pid"`
	UID     int    `json:"uid"`
	GID     int    `json:"gid"`
	// Env is the environment that the container gives a process, "NAME=value".
	Env []string `json:"env"`
}

// runHeader opens a run: the sizes of the three parts of its body, 4, 4 and 8 bytes.
type runHeader struct {
	spec, code uint32
	input      uint64
}

const runHeaderSize = 4 + 4 + 8

func (h runHeader) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, h.spec)
	b = binary.BigEndian.AppendUint32(b, h.code)
	return binary.BigEndian.AppendUint64(b, h.input)
}

func parseRunHeader(p []byte) (h runHeader, rest []byte, err error) {
	if len(p) < runHeaderSize {
		return h, nil, fmt.Errorf("%w: run frame of %d bytes", errProtocol, len(p))
	}
	h.spec = binary.BigEndian.Uint32(p)
	h.code = binary.BigEndian.Uint32(p[4:])
	h.input = binary.BigEndian.Uint64(p[8:])
	if err := h.check(); err != nil {
		return h, nil, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return h, p[runHeaderSize:], nil
}

func (h runHeader) check() error {
	switch {
	case h.spec > MaxSpec:
		return fmt.Errorf("arguments and environment of %d bytes, at most %d allowed", h.spec, MaxSpec)
	case h.code > MaxCode:
		return fmt.Errorf("code of %d bytes, at most %d allowed", h.code, MaxCode)
	case h.input > MaxInput:
		return fmt.Errorf("input of %d bytes, at most %d allowed", h.input, MaxInput)
	}
	return nil
}

func (h runHeader) size() int { return int(h.spec) + int(h.code) + int(h.input) }

// specDoc is a sandbox.Spec but for its code, input and sinks.
type specDoc struct {
	Project  string         `json:"project,omitzero"`
	Argv     []string       `json:"argv,omitzero"`
	Inline   bool           `json:"inline,omitzero"`
	Name     string         `json:"name,omitzero"`
	Env      []string       `json:"env,omitzero"`
	Root     string         `json:"root"`
	Writable bool           `json:"writable,omitzero"`
	Protect  []string       `json:"protect,omitzero"`
	ReadOnly []string       `json:"read_only,omitzero"`
	Network  bool           `json:"network,omitzero"`
	Least    tool.Isolation `json:"least,omitzero"`
	Limits   tool.Limits    `json:"limits,omitzero"`
}

func newSpecDoc(s *sandbox.Spec) specDoc {
	return specDoc{
		Project: s.Project, Argv: s.Argv, Inline: s.Argv == nil, Name: s.Name, Env: s.Env, Root: s.Root,
		Writable: s.Writable, Protect: s.Protect, ReadOnly: s.ReadOnly, Network: s.Network,
		Least: s.Least, Limits: s.Limits,
	}
}

func (d *specDoc) spec() *sandbox.Spec {
	return &sandbox.Spec{
		Project: d.Project, Argv: d.Argv, Name: d.Name, Env: d.Env, Root: d.Root,
		Writable: d.Writable, Protect: d.Protect, ReadOnly: d.ReadOnly, Network: d.Network,
		Least: d.Least, Limits: d.Limits,
	}
}

// exitDoc is a sandbox.Exit, or the reason why the runner gave none.
type exitDoc struct {
	Fault      string               `json:"fault,omitzero"`
	StartError string               `json:"start_error,omitzero"`
	Code       int                  `json:"code"`
	Signal     string               `json:"signal,omitzero"`
	TimedOut   bool                 `json:"timed_out,omitzero"`
	Hit        tool.Code            `json:"hit,omitzero"`
	HitName    string               `json:"hit_name,omitzero"`
	Value      jsontext.Value       `json:"value,omitzero"`
	ValueError string               `json:"value_error,omitzero"`
	DurationNS int64                `json:"duration_ns,omitzero"`
	Changes    []tool.Change        `json:"changes,omitzero"`
	ChangesCut bool                 `json:"changes_cut,omitzero"`
	Usage      tool.Usage           `json:"usage,omitzero"`
	Sandbox    tool.SandboxMetadata `json:"sandbox,omitzero"`
}

func newExitDoc(x *sandbox.Exit) *exitDoc {
	d := &exitDoc{
		StartError: x.StartError, Code: x.Code, Signal: x.Signal, TimedOut: x.TimedOut,
		Hit: x.Hit, HitName: x.HitName, ValueError: x.ValueError, DurationNS: int64(x.Duration),
		Changes: x.Changes, ChangesCut: x.ChangesTruncated, Usage: x.Usage, Sandbox: x.Sandbox,
	}
	if x.Value != nil {
		if v := jsontext.Value(x.Value); v.IsValid() {
			d.Value = v
		} else {
			d.ValueError = "result is not strict JSON"
		}
	}
	return d
}

func (d *exitDoc) exit() *sandbox.Exit {
	return &sandbox.Exit{
		StartError: d.StartError, Code: d.Code, Signal: d.Signal, TimedOut: d.TimedOut,
		Hit: d.Hit, HitName: d.HitName, Value: d.Value, ValueError: d.ValueError,
		Duration: max(0, time.Duration(d.DurationNS)), Changes: d.Changes, ChangesTruncated: d.ChangesCut,
		Usage: d.Usage, Sandbox: d.Sandbox,
	}
}

// check refuses what no honest agent says: the worker's own decisions hang on it.
func (d *exitDoc) check() error {
	switch {
	case d.Code < -1 || d.Code > 255:
		return fmt.Errorf("%w: exit code %d", errProtocol, d.Code)
	case d.Hit != "" && d.Hit != tool.OutOfMemory && d.Hit != tool.TooManyProcesses &&
		d.Hit != tool.LimitExceeded && d.Hit != tool.SandboxViolation:
		return fmt.Errorf("%w: limit %q", errProtocol, d.Hit)
	}
	return nil
}

// readDoc asks for a file below root.
type readDoc struct {
	Root string `json:"root"`
	Path string `json:"path"` // relative to Root
	Max  int64  `json:"max"`  // bytes
}

// fileDoc ends the content of a file, or says why there is none.
type fileDoc struct {
	Error string `json:"error,omitzero"`
	Size  int64  `json:"size"`
}

// stageDoc names files that are to be there for later runs.
type stageDoc struct {
	Key string `json:"key"` // lower-case hex
}

// stagedDoc says where they are.
type stagedDoc struct {
	Error string `json:"error,omitzero"`
	Path  string `json:"path,omitzero"`
}

func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}

func decode(b []byte, v any) error {
	if err := json.Unmarshal(b, v, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: decode %T: %w", errProtocol, v, err)
	}
	return nil
}
