package container

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/sandbox/python"
)

// maxPlainValue bounds what a process may say about its result, in bytes.
const maxPlainValue = python.MaxValueBytes + 1024

// plainPython is the interpreter of a container without an agent, looked for
// when the first code comes.
type plainPython struct {
	mu          sync.Mutex
	interpreter *python.Interpreter
}

// command gives the command line that runs a task's code, and what it reads.
func (p *plainPython) command(ctx context.Context, s *plainSession, t *exec.Task) (argv []string, input []byte, err error) {
	i, err := p.find(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	request := python.Request{Name: t.Name, Code: []byte(t.Code), Input: t.Input}
	frame, err := request.Frame()
	if err != nil {
		return nil, nil, unusablef("%v", err)
	}
	return i.Cold.Argv, append(bytes.Clone(i.Cold.Prologue), frame...), nil
}

func (p *plainPython) find(ctx context.Context, s *plainSession) (*python.Interpreter, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.interpreter != nil {
		return p.interpreter, nil
	}
	var broken error
	i, err := python.ResolveBy(ctx, "python3", func(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
		said := &tail{}
		out, err := s.call(ctx, append([]string{"/bin/sh", "-c", `exec "$@"`, "sh"}, argv...), stdin, said)
		if err != nil {
			broken = err
		} else if len(out) == 0 {
			err = fmt.Errorf("no answer%s", said.quoted())
		}
		return out, err
	})
	switch {
	case broken != nil:
		return nil, broken
	case err != nil:
		return nil, unusablef("the container cannot run Python code: %v", err)
	}
	p.interpreter = i
	return i, nil
}

// readPlainValue reads what a process said about its result.
func readPlainValue(said io.Reader) (value []byte, reason string) {
	value, reason, err := python.ReadValue(said, 0)
	if err != nil {
		return nil, "result was cut off"
	}
	return value, reason
}
