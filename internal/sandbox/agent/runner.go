package agent

import (
	"context"
	"errors"
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/tool"
)

// runner is what an agent runs things with: commands in slots, inline code in
// the sandbox's own runner, which looks for the container's Python when the
// first code comes. Both confine at level reduced.
type runner struct {
	*commands
	newPython func() (sandbox.Runner, error)

	once      sync.Once
	python    sandbox.Runner
	pythonErr error
}

func newRunner(executable string) *runner {
	return &runner{commands: newCommands(executable), newPython: func() (sandbox.Runner, error) {
		c := sandbox.Config{Executable: executable, Level: tool.IsolationReduced}
		r, err := sandbox.New(c)
		if err == nil {
			return r, nil
		}
		// The container confines it all the same, and the result says so.
		c.Level, c.Require = tool.IsolationNone, tool.IsolationNone
		if r, weaker := sandbox.New(c); weaker == nil {
			return r, nil
		}
		return nil, err
	}}
}

// Run implements sandbox.Runner.
func (r *runner) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	if s.Code == nil {
		return r.guarded(ctx, s)
	}
	r.once.Do(func() { r.python, r.pythonErr = r.newPython() })
	if r.pythonErr != nil {
		return &sandbox.Exit{Code: -1, StartError: "the container cannot run Python code: " + r.pythonErr.Error()}, nil
	}
	s.ReadOnly = append(s.ReadOnly, readable()...)
	return r.python.Run(ctx, s)
}

// guarded runs a command and restores what it did to protected paths: nothing
// in a container keeps it from that.
func (r *runner) guarded(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	if !s.Writable || len(s.Protect) == 0 {
		return r.commands.Run(ctx, s)
	}
	g, err := guard.New(s.Root, s.Protect, false)
	if err != nil {
		return nil, err
	}
	x, err := r.commands.Run(ctx, s)
	if _, restoreErr := g.Restore(); restoreErr != nil && err == nil {
		return nil, restoreErr
	}
	return x, err
}

// Close implements sandbox.Runner.
func (r *runner) Close() error {
	r.once.Do(func() { r.pythonErr = sandbox.ErrClosed })
	err := r.commands.Close()
	if r.python != nil {
		err = errors.Join(err, r.python.Close())
	}
	return err
}
