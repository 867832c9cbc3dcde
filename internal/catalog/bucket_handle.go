package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// The keys of the bucket: tool.<name>, project.<id>, pause.<kind>.<name> and
// this one.
const revisionKey = "revision"

// Bounds of single operations on the bucket, so that a server that goes away
// in the middle of one cannot hold anything up for long: an answer that was
// lost with it never comes.
const (
	askTimeout   = 2 * time.Second
	writeTimeout = 10 * time.Second
	scanTimeout  = 30 * time.Second
)

// bucketHandle opens the bucket when it is first needed, and again after it
// was gone.
type bucketHandle struct {
	js   jetstream.JetStream
	name string

	mu sync.Mutex
	kv jetstream.KeyValue
}

func (h *bucketHandle) open(ctx context.Context) (jetstream.KeyValue, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.kv != nil {
		return h.kv, nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	kv, err := h.js.KeyValue(ctx, h.name)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", h.name, err)
	}
	h.kv = kv
	return kv, nil
}

// position is how far the bucket has been written.
type position struct {
	created time.Time // another time: another bucket of the same name
	last    uint64    // revision of the last write of any key
}

// position asks the leader, so that it is never behind.
func (h *bucketHandle) position(ctx context.Context) (jetstream.KeyValue, position, error) {
	kv, err := h.open(ctx)
	if err != nil {
		return nil, position{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := kv.Status(ctx)
	if err != nil {
		return nil, position{}, fmt.Errorf("read status of bucket %s: %w", h.name, err)
	}
	s, ok := status.(*jetstream.KeyValueBucketStatus)
	if !ok {
		return nil, position{}, fmt.Errorf("read status of bucket %s: unexpected %T", h.name, status)
	}
	info := s.StreamInfo()
	return kv, position{info.Created, info.State.LastSeq}, nil
}

// watch sends to wake when the revision or a switch changes, until ctx is
// done. It only ever makes things faster: after a server restart a watcher
// can be blind for many seconds, and the source looks by itself as well.
func (h *bucketHandle) watch(ctx context.Context, pause time.Duration, wake chan<- struct{}) {
	for ctx.Err() == nil {
		h.watchOnce(ctx, wake)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (h *bucketHandle) watchOnce(ctx context.Context, wake chan<- struct{}) {
	kv, err := h.open(ctx)
	if err != nil {
		return // the source says so when it looks itself
	}
	w, err := kv.WatchFiltered(ctx, []string{revisionKey, switchPrefix + ">"}, jetstream.UpdatesOnly(), jetstream.MetaOnly())
	if err != nil {
		return
	}
	defer stopWatcher(w)
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-w.Updates():
			if !ok {
				return
			}
			select {
			case wake <- struct{}{}:
			default: // one is due already
			}
		}
	}
}

// record is one write of one key.
type record struct {
	key      string
	value    []byte
	revision uint64
	written  time.Time
	deleted  bool
}

// scan reads every key that one of filters matches: its last write, or all
// that the history has, oldest first.
func scan(ctx context.Context, kv jetstream.KeyValue, history bool, filters ...string) ([]record, error) {
	ctx, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	var opts []jetstream.WatchOpt
	if history {
		opts = append(opts, jetstream.IncludeHistory())
	}
	w, err := kv.WatchFiltered(ctx, slices.Clone(filters), opts...) // the library writes into the slice
	if err != nil {
		return nil, fmt.Errorf("read bucket %s: %w", kv.Bucket(), err)
	}
	defer stopWatcher(w)
	var records []record
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("read bucket %s: %w", kv.Bucket(), context.Cause(ctx))
		case e, ok := <-w.Updates():
			switch {
			case !ok:
				return nil, fmt.Errorf("read bucket %s: interrupted", kv.Bucket())
			case e == nil: // everything there was has been read
				return records, nil
			}
			records = append(records, record{e.Key(), e.Value(), e.Revision(), e.Created(), e.Operation() != jetstream.KeyValuePut})
		}
	}
}

// stopWatcher ends a watcher and waits for its end. Its updates are drained
// meanwhile, since the library blocks on them; it closes them whether or not
// the server could be told.
func stopWatcher(w jetstream.KeyWatcher) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range w.Updates() {
		}
	}()
	_ = w.Stop()
	<-done
}
