package container

import (
	"context"
	"strings"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
)

// agentSession runs tasks through the agent in their container.
type agentSession struct {
	*agent.Session
	backend *Backend
	env     []string // what the container gives a process
	staged  staged
}

func newAgentSession(b *Backend, s *agent.Session) *agentSession {
	return &agentSession{Session: s, backend: b, env: s.Hello().Env}
}

func (s *agentSession) mode() string          { return modeAgent }
func (s *agentSession) done() <-chan struct{} { return s.Done() }
func (s *agentSession) close()                { _ = s.Session.Close() }

func (s *agentSession) run(ctx context.Context, p *place, t *exec.Task) (*exec.Ending, error) {
	argv, beside, err := s.bring(ctx, t)
	if err != nil {
		return nil, err
	}
	spec := &sandbox.Spec{
		Project: t.Project.ID, Argv: argv, Name: t.Name, Input: t.Input, Env: environ(s.env, t),
		Root: p.workspace, Writable: t.Writes, Protect: t.Protect, Network: t.Network, Limits: t.Limits,
	}
	if beside != "" {
		spec.ReadOnly = []string{beside}
	}
	if p.bound {
		spec.Protect = nil // guarded from outside
	}
	if t.Argv == nil {
		spec.Code = []byte(t.Code)
	}
	out := newOutput(t, s.backend.config.SpoolDir)
	out.attach(spec)
	x, err := s.Session.Run(ctx, spec)
	if err != nil {
		out.discard()
		return nil, err
	}
	return out.ending(t, p, x, s.backend.log)
}

// environ is the environment of a tool in a container: what the container
// gives, then what the task gives. PATH is the container's, unless project or
// tool say otherwise: the worker's own means nothing there.
func environ(container []string, t *exec.Task) []string {
	ours := setsPath(t)
	values := make(map[string]string)
	var names []string
	set := func(list []string, keepPath bool) {
		for _, kv := range list {
			name, value, ok := strings.Cut(kv, "=")
			if !ok || name == "" {
				continue
			}
			old, known := values[name]
			if !known {
				names = append(names, name)
			}
			if name == "PATH" && keepPath && old != "" {
				continue
			}
			values[name] = value
		}
	}
	set(container, false)
	set(t.Env, !ours)
	env := make([]string, 0, len(names))
	for _, name := range names {
		env = append(env, name+"="+values[name])
	}
	return env
}
