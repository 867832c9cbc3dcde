package catalog

import (
	"context"

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
