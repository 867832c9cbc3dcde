package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/sandbox/python"
	"github.com/toolworker/toolworker/internal/sandbox/warm"
)

// Warm says how Python is kept ready before it is asked for.
type Warm string

// The ways. Whatever the way is, a run that finds nothing ready starts cold,
// with the same result.
const (
	// WarmFork keeps a process that forks a confined child ahead of each run.
	WarmFork Warm = "fork"
	// WarmSpawn starts interpreters ahead, each for one run: they share
	// neither the layout of their memory nor their hash seed.
	WarmSpawn Warm = "spawn"
	// WarmOff starts every run cold.
	WarmOff Warm = "off"
)

// ParseWarm reads "fork", "spawn" or "off"; "" stays "".
func ParseWarm(s string) (Warm, error) {
	switch w := Warm(s); w {
	case "", WarmFork, WarmSpawn, WarmOff:
		return w, nil
	}
	return "", fmt.Errorf("%q: expected fork, spawn or off", s)
}

// DefaultPreload are the modules that inline code imports most, without those
// that make every fork noticeably dearer (dataclasses, subprocess, uuid).
func DefaultPreload() []string {
	return []string{
		"base64", "collections", "copy", "csv", "datetime", "enum", "functools", "glob", "hashlib", "io", "itertools", "json",
		"math", "operator", "os", "pathlib", "random", "re", "string", "textwrap", "time", "typing",
	}
}

// Preparer is what a Runner also is that keeps Python ready.
type Preparer interface {
	// Prepare waits until something is ready for runs that have everything
	// in common with s but the code, its name, input and output. An error
	// says why nothing will be; runs then start cold.
	Prepare(ctx context.Context, s *Spec) error
}

// Prepare implements Preparer.
func (r *runner) Prepare(ctx context.Context, s *Spec) error {
	if err := s.validate(); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if r.warmth == nil {
		return errors.New("nothing is kept ready: warm starts are off")
	}
	real := *s
	if s.Writable {
		paths, err := guard.Paths(s.Root, s.Protect)
		if err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		real.Protect = paths
	}
	kind, err := kindOf(&real)
	if err != nil {
		return err
	}
	return r.warmth.pool.Prepare(ctx, kind, r.warmth.starter(&real))
}

// ready is something that waits for one run at a time.
type ready interface {
	warm.Slot
	// run runs code. An ErrNotStarted leaves the run to somebody else.
	run(ctx context.Context, s *Spec) (*Exit, warm.Outcome, error)
}

// warmth keeps what is ready.
type warmth struct {
	runner  *runner
	pool    *warm.Pool[ready]
	start   func(ctx context.Context, s *Spec) (ready, error)
	program func() (*python.Program, error)
}

// newWarmth gives nil when nothing is to be kept ready.
func newWarmth(r *runner) *warmth {
	w := &warmth{runner: r}
	config := warm.Config{MaxSlots: r.config.WarmSlots, MayGrow: (&warm.Memory{Reserve: 0.1}).Free, Log: r.config.Log}
	switch r.config.Warm {
	case WarmFork:
		w.start = w.startFork
		w.program = sync.OnceValues(func() (*python.Program, error) {
			return r.interpreter.Server(context.Background(), warm.Source)
		})
	case WarmSpawn:
		config.MaxUses = 1
		w.start = w.startSpare
		w.program = sync.OnceValues(func() (*python.Program, error) {
			source, err := warm.Spare(r.config.Preload)
			if err != nil {
				return nil, err
			}
			return r.interpreter.Server(context.Background(), source)
		})
	default:
		return nil
	}
	w.pool = warm.NewPool[ready](config)
	return w
}

// run runs s, which has code, in what is ready for it, or cold.
func (w *warmth) run(ctx context.Context, s *Spec) (*Exit, error) {
	kind, err := kindOf(s)
	if err != nil {
		return nil, err
	}
	lease := w.pool.Acquire(ctx, kind, w.starter(s))
	outcome := warm.Fine
	defer func() { lease.Release(outcome) }()
	if slot, ok := lease.Slot(); ok {
		var exit *Exit
		exit, outcome, err = slot.run(ctx, s)
		if !errors.Is(err, warm.ErrNotStarted) {
			return exit, err
		}
		w.runner.config.Log.Warn("warm start failed, execution starts cold",
			slog.String("kind", kind), slog.Any("error", err))
	}
	return w.runner.runCold(ctx, s, w.runner.level)
}

// starter starts a slot of the kind of s, without keeping what belongs to
// this run alone.
func (w *warmth) starter(s *Spec) func(ctx context.Context) (ready, error) {
	template := Spec{
		Project: s.Project, Code: []byte{}, Env: s.Env, Root: s.Root, Writable: s.Writable, Protect: s.Protect,
		ReadOnly: s.ReadOnly, Network: s.Network, Least: s.Least, Limits: s.Limits,
	}
	return func(ctx context.Context) (ready, error) { return w.start(ctx, &template) }
}

func (w *warmth) close() {
	if w != nil {
		w.pool.Close()
	}
}
