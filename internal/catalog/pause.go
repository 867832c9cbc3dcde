package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Pause holds back the requests of a pool, project or tool: they wait in the
// queue of every worker until it is resumed. Pausing twice is no error.
func (s *Store) Pause(ctx context.Context, w Switch) error {
	if err := w.check(); err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if _, err := s.kv.Put(ctx, w.key(), []byte(`{}`)); err != nil {
		return fmt.Errorf("pause %s: %w", w, err)
	}
	return nil
}

// Resume ends a Pause. What was not paused gives ErrNotFound.
func (s *Store) Resume(ctx context.Context, w Switch) error {
	if err := w.check(); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	_, err := s.kv.Get(ctx, w.key())
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return fmt.Errorf("resume %s: it is not paused: %w", w, ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("resume %s: %w", w, err)
	}
	if err := s.kv.Purge(ctx, w.key()); err != nil {
		return fmt.Errorf("resume %s: %w", w, err)
	}
	return nil
}

// Switches lists what is paused.
func (s *Store) Switches(ctx context.Context) ([]Switch, error) {
	held, err := readSwitches(ctx, s.kv)
	if err != nil {
		return nil, err
	}
	return (&Snapshot{switches: held}).Switches(), nil
}
