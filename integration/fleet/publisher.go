package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Publisher runs `publisher` against one server.
type Publisher struct {
	// Stdin is what each command reads; Env are more environment variables,
	// "NAME=value".
	Stdin string
	Env   []string

	t      testing.TB
	common []string
}

// NewPublisher returns a Publisher for the server at url. args are further
// connection flags.
func NewPublisher(t testing.TB, url string, args ...string) *Publisher {
	return &Publisher{t: t, common: append([]string{"--nats-url", url}, args...)}
}

// Command is one command, not yet started.
func (p *Publisher) Command(command string, args ...string) *exec.Cmd {
	p.t.Helper()
	cmd := exec.Command(Binary(p.t, "publisher"), append(append([]string{command}, p.common...), args...)...)
	cmd.Dir = p.t.TempDir()
	cmd.Stdin = strings.NewReader(p.Stdin)
	cmd.Env = append(os.Environ(), p.Env...)
	return cmd
}

// Ran is how one command ended.
type Ran struct {
	Code           int
	Stdout, Stderr string
}

// Run runs one command.
func (p *Publisher) Run(command string, args ...string) Ran {
	p.t.Helper()
	cmd := p.Command(command, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("publisher %s: %v", command, err)
	}
	return Ran{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// Result is the part of a result that tests look at.
type Result struct {
	RequestID string          `json:"request_id"`
	Status    string          `json:"status"`
	Output    json.RawMessage `json:"output"`
	Value     json.RawMessage `json:"value"`
	Attempt   int             `json:"attempt"`
	Worker    string          `json:"worker"`
	Error     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Result runs one command with --json, checks its exit code and reads the result.
func (p *Publisher) Result(code int, command string, args ...string) Result {
	p.t.Helper()
	ran := p.Run(command, append(args, "--json")...)
	if ran.Code != code {
		p.t.Fatalf("publisher %s %v: exit %d, want %d\n%s%s", command, args, ran.Code, code, ran.Stdout, ran.Stderr)
	}
	var r Result
	if err := json.Unmarshal([]byte(ran.Stdout), &r); err != nil {
		p.t.Fatalf("publisher %s %v: result %q: %v", command, args, ran.Stdout, err)
	}
	return r
}

// MustRun runs one command that has to end with 0.
func (p *Publisher) MustRun(command string, args ...string) Ran {
	p.t.Helper()
	ran := p.Run(command, args...)
	if ran.Code != 0 {
		p.t.Fatalf("publisher %s %v: exit %d\n%s%s", command, args, ran.Code, ran.Stdout, ran.Stderr)
	}
	return ran
}
