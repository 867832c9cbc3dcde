package host

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/exectest"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// prepared is a runner for whose code something is ready, unless there is
// more of it at a time than anything is kept ready for.
type prepared struct {
	sandbox.Runner
	warm, cold atomic.Int64
}

func (p *prepared) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	if s.Code == nil {
		return p.Runner.Run(ctx, s)
	}
	if err := p.Runner.(sandbox.Preparer).Prepare(context.WithoutCancel(ctx), s); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	e, err := p.Runner.Run(ctx, s)
	switch {
	case err == nil && e.Warm:
		p.warm.Add(1)
	case err == nil:
		p.cold.Add(1)
	}
	return e, err
}

// A warm start keeps all the promises of a cold one.
func TestConformanceWarm(t *testing.T) {
	for level, promises := range levels {
		t.Run(string(level), func(t *testing.T) {
			runner, err := sandbox.New(sandbox.Config{Require: level, Level: level, Warm: sandbox.WarmFork})
			if err != nil {
				t.Fatal(err)
			}
			p := &prepared{Runner: runner}
			t.Cleanup(func() {
				_ = runner.Close()
				if warm, cold := p.warm.Load(), p.cold.Load(); warm < 2*cold {
					t.Errorf("%d executions started warm, %d cold", warm, cold)
				}
			})
			backend, err := New(Config{Runner: p})
			if err != nil {
				t.Fatal(err)
			}
			exectest.Run(t, func(t *testing.T) exectest.Subject {
				s := promises
				s.Backend, s.Environment = backend, tool.Host
				s.Root = projectDir(t)
				s.Inside = s.Root
				return s
			})
		})
	}
}
