package container

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/tool"
)

// Backend runs tasks in containers. All its methods may be called from any
// number of goroutines.
type Backend struct {
	config      Config
	log         *slog.Logger
	engine      *engine.Engine
	binary      *binary
	inspections *inspections
	sessions    *sessions
	made        *made
	dev         *devcontainers

	stop context.CancelFunc
	work sync.WaitGroup
	once sync.Once
}

var _ exec.Backend = (*Backend)(nil)

// New returns a Backend, or ErrOff when no engine is configured and none is
// found. The engine need not be reachable yet. What a dead worker left behind
// on it is removed in the background, now and then again.
func New(c Config) (*Backend, error) {
	c = c.WithDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	e, err := engine.Open(c.Engine)
	if err != nil {
		return nil, err
	}
	b := &Backend{config: c, log: c.Log, engine: e, binary: inspectBinary(c.Executable)}
	if b.binary.err != nil {
		c.Log.Warn("tools in containers run without an agent", "reason", b.binary.err)
	}
	b.inspections = &inspections{engine: e, seen: make(map[string]inspection)}
	b.sessions = newSessions(b.open)
	b.made = newMade(c, e, b.binary, b.inspections)
	b.dev = newDevcontainers(c, b.inspections)
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.work.Go(func() { b.made.keepTidy(ctx) })
	return b, nil
}

// Close ends every session and removes every container and volume of this
// worker. It is idempotent.
func (b *Backend) Close() error {
	var err error
	b.once.Do(func() {
		b.stop()
		b.work.Wait()
		b.sessions.close()
		err = errors.Join(b.made.removeAll(), b.dev.close(), b.engine.Close())
	})
	return err
}

// Run implements exec.Backend.
func (b *Backend) Run(ctx context.Context, t *exec.Task) (*exec.Ending, error) {
	place, s, err := b.enter(ctx, t)
	if err != nil {
		return b.refusal(t, place, err)
	}
	defer place.release()
	began := time.Now()
	ending, err := guarded(place, t, func() (*exec.Ending, error) { return s.run(ctx, place, t) })
	if err == nil {
		return ending, nil
	}
	return b.lost(ctx, t, place, began, err)
}

// enter finds the place of a task and its session. The caller releases the
// place when there is no error.
func (b *Backend) enter(ctx context.Context, t *exec.Task) (*place, session, error) {
	for attempt := 0; ; attempt++ {
		p, err := b.place(ctx, t)
		if err != nil {
			return p, nil, err
		}
		s, err := b.sessions.get(ctx, p)
		if err == nil {
			return p, s, nil
		}
		p.release()
		var f *tool.Fault
		var u *unusable
		switch {
		case ctx.Err() != nil, errors.As(err, &f), errors.As(err, &u):
			return p, nil, err
		case attempt > 0:
			return p, nil, asUnusable(err)
		}
		// The engine refused: the container is not any more what it was a moment ago.
		b.inspections.forget(p.container)
	}
}

// guarded runs a task and restores what it did to protected paths where
// nothing kept it from that. Of a workspace that is not the project's own
// directory the agent does so.
func guarded(p *place, t *exec.Task, run func() (*exec.Ending, error)) (*exec.Ending, error) {
	if !t.Writes || !p.bound || len(t.Protect) == 0 {
		return run()
	}
	g, err := guard.New(t.Root, t.Protect, p.protected)
	if err != nil {
		return nil, &tool.Fault{Err: err}
	}
	ending, err := run()
	if _, restoreErr := g.Restore(); restoreErr != nil && err == nil {
		return nil, &tool.Fault{Err: restoreErr}
	}
	return ending, err
}

// errClosed is what a closed Backend gives.
var errClosed = &tool.Fault{Err: errors.New("container backend is closed")}

// unusable is why nothing can run in a container, in a sentence that helps.
type unusable struct{ reason string }

func (u *unusable) Error() string { return u.reason }

func unusablef(format string, args ...any) error { return &unusable{fmt.Sprintf(format, args...)} }

// refusal is the ending of a task that never reached its container, or the
// error itself when that is nobody's answer.
func (b *Backend) refusal(t *exec.Task, p *place, err error) (*exec.Ending, error) {
	var u *unusable
	if !errors.As(err, &u) {
		return nil, err
	}
	return notStarted(t, p, u.reason), nil
}

// lost says what became of a task whose session broke: the container's state
// decides. A container that is as it should be has lost its agent, which is
// nobody's fault but ours.
func (b *Backend) lost(ctx context.Context, t *exec.Task, p *place, began time.Time, err error) (*exec.Ending, error) {
	var f *tool.Fault
	if !errors.As(err, &f) {
		return b.refusal(t, p, err)
	}
	if context.Cause(ctx) != nil {
		return nil, err
	}
	if limit := t.Limits.Timeout(); limit > 0 && time.Since(began) >= limit {
		ending := notStarted(t, p, "")
		ending.ExitCode, ending.Signal, ending.TimedOut, ending.Duration = 137, "SIGKILL", true, time.Since(began)
		ending.Container.ExitCode, ending.Container.TimedOut = 137, true
		ending.Container.ExecTimeMS = milliseconds(ending.Duration)
		return ending, nil
	}
	b.inspections.forget(p.container)
	c, inspect := b.settled(ctx, p.container.ID)
	switch {
	case errors.Is(inspect, engine.ErrNotFound):
		return notStarted(t, p, fmt.Sprintf("container %s was removed while the tool ran", p.container.Name)), nil
	case inspect != nil:
		return nil, inspect
	case c.Unusable() != "":
		return notStarted(t, p, fmt.Sprintf("while the tool ran: %s", c.Unusable())), nil
	}
	return nil, err
}

// settleTime is how long an engine may take to notice what became of a
// container whose processes have ended.
const settleTime = time.Second

// settled inspects a container until it is no longer running, for a moment:
// when a container ends, its agent's stream ends first.
func (b *Backend) settled(ctx context.Context, id string) (*engine.Container, error) {
	tick := time.NewTicker(settleTime / 20)
	defer tick.Stop()
	for end := time.Now().Add(settleTime); ; {
		c, err := b.engine.Inspect(ctx, id)
		if err != nil || c.Unusable() != "" || time.Now().After(end) {
			return c, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return c, nil
		}
	}
}
