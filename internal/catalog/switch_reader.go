package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// switchReader follows the switches in the bucket. It is not safe for
// concurrent use.
type switchReader struct {
	bucket *bucketHandle
	mark   mark
	held   switches
}

// refresh reads the switches if anything was written to the bucket.
func (r *switchReader) refresh(ctx context.Context) (held switches, changed bool, err error) {
	kv, at, err := r.bucket.position(ctx)
	if err != nil {
		return nil, false, err
	}
	if r.mark.current(at) {
		return r.held, false, nil
	}
	next, err := readSwitches(ctx, kv)
	if err != nil {
		return nil, false, err
	}
	r.mark.set(at)
	if sameSwitches(next, r.held) {
		return r.held, false, nil
	}
	r.held = next
	return next, true, nil
}

func readSwitches(ctx context.Context, kv jetstream.KeyValue) (switches, error) {
	records, err := scan(ctx, kv, false, switchPrefix+">")
	if err != nil {
		return nil, err
	}
	held := switches{}
	for _, rec := range records {
		if s, ok := switchOf(rec.key); ok && !rec.deleted {
			held[s] = struct{}{}
		}
	}
	return held, nil
}

func sameSwitches(a, b switches) bool {
	if len(a) != len(b) {
		return false
	}
	for s := range a {
		if _, ok := b[s]; !ok {
			return false
		}
	}
	return true
}

// mark remembers up to where the bucket was read. The position comes from the
// leader, what is then read may come from a replica that lags behind it: only
// a position that was read twice is done with.
type mark struct {
	at    position
	reads int
}

func (m *mark) current(at position) bool { return m.at == at && m.reads >= 2 }

func (m *mark) set(at position) {
	if m.at != at {
		m.at, m.reads = at, 0
	}
	m.reads++
}

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
