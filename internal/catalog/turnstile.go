package catalog

import (
	"context"
	"sync"
)

// turnstile lets one caller work at a time.
type turnstile struct {
	slot chan struct{}

	mu    sync.Mutex
	begun uint64 // works so far
	err   error  // of the work that ended last
}

func newTurnstile() turnstile { return turnstile{slot: make(chan struct{}, 1)} }

// pass does the work when it is the caller's turn.
func (t *turnstile) pass(ctx context.Context, work func(context.Context) error) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.leave()
	return t.do(ctx, work)
}

// share is pass for many who ask at the same time: who waited while somebody
// else did work that began after the question has that answer too.
func (t *turnstile) share(ctx context.Context, work func(context.Context) error) error {
	t.mu.Lock()
	asked := t.begun
	t.mu.Unlock()
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.leave()
	t.mu.Lock()
	answered := t.begun > asked && t.err == nil
	t.mu.Unlock()
	if answered {
		return nil
	}
	return t.do(ctx, work)
}

func (t *turnstile) enter(ctx context.Context) error {
	select {
	case t.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turnstile) leave() { <-t.slot }

func (t *turnstile) do(ctx context.Context, work func(context.Context) error) error {
	t.mu.Lock()
	t.begun++
	t.mu.Unlock()
	err := work(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
	return err
}
