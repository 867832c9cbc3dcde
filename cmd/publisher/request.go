package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/tool"
)

// laneFlags say where a request is queued.
type laneFlags struct {
	Pool     command.Name `name:"pool" default:"default" placeholder:"NAME" help:"Pool of workers to ask (${default})."`
	Priority string       `name:"priority" enum:"high,normal,low" default:"normal" placeholder:"P" help:"high, normal or low (${default})."`
}

// waitFlags say how long a result is waited for.
type waitFlags struct {
	WaitTimeout time.Duration `name:"wait-timeout" default:"5m" placeholder:"DURATION" help:"How long to wait for a result; exit code 3 after it (${default})."`
}

// Validate names the value that cannot be.
func (f *waitFlags) Validate() error {
	if f.WaitTimeout <= 0 {
		return fmt.Errorf("--wait-timeout %s: expected more than 0s", f.WaitTimeout)
	}
	return nil
}

// requestFlags are those of every command that makes one request.
type requestFlags struct {
	Project command.Name `name:"project" short:"p" required:"" placeholder:"PROJECT" help:"Project that the request is about."`
	inputFlags
	ToolEnv string   `name:"tool-env" enum:",host,container" default:"" placeholder:"E" help:"Where to run it: host or container (the catalogue's, plan's and project's choice)."`
	Plan    string   `name:"plan" placeholder:"ID" help:"Plan that the request belongs to."`
	Timeout *float64 `name:"timeout" placeholder:"S" help:"Seconds that the tool may take, fractions allowed (the tool's, else the project's)."`
	Output  []string `name:"output" sep:"none" placeholder:"PATH" help:"File that the tool writes and that the result is to verify; repeatable."`
	laneFlags
	ID     command.Name `name:"id" placeholder:"ID" help:"Id of the request (a new UUIDv7)."`
	Stream bool         `name:"stream" help:"Show output as it arrives."`
	NoWait bool         `name:"no-wait" help:"Print the id and do not wait for the result."`
	waitFlags
}

// Validate names the value that cannot be.
func (f *requestFlags) Validate() error {
	if f.Timeout != nil && !(*f.Timeout > 0) { // NaN neither
		return fmt.Errorf("--timeout %v: expected more than 0", *f.Timeout)
	}
	if f.NoWait && f.Stream {
		return errors.New("--stream and --no-wait: expected one of them")
	}
	return f.waitFlags.Validate()
}

// request is what the flags ask for, but for the tool or the inline code.
func (f *requestFlags) request(stdin io.Reader) (*tool.Request, error) {
	input, err := f.object(stdin)
	if err != nil {
		return nil, err
	}
	var limits tool.Limits
	if f.Timeout != nil {
		limits.TimeoutSeconds = *f.Timeout
	}
	return &tool.Request{
		Envelope: tool.Envelope{ID: string(f.ID), Source: source(), Time: time.Now().UTC()},
		Pool:     string(f.Pool),
		Priority: tool.Priority(f.Priority),
		Project:  string(f.Project),
		Input:    input,
		ToolEnv:  tool.Environment(f.ToolEnv),
		Plan:     tool.Plan{ID: f.Plan},
		Limits:   limits,
		Outputs:  f.Output,
		Stream:   f.Stream,
	}, nil
}

// newID is an unguessable id that sorts by time.
func newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make a request id: %w", err)
	}
	return id.String(), nil
}

// source is the URI reference of this planner.
func source() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	return "/publisher/" + cmp.Or(host, "unknown")
}
