package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// openObject opens an object for reading; ErrNotFound when there is none.
func openObject(ctx context.Context, store jetstream.ObjectStore, name string) (jetstream.ObjectResult, *jetstream.ObjectInfo, error) {
	r, err := store.Get(ctx, name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, nil, fmt.Errorf("object %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read object %s: %w", name, err)
	}
	info, err := r.Info()
	if err != nil {
		_ = r.Close()
		return nil, nil, fmt.Errorf("read object %s: %w", name, err)
	}
	return r, info, nil
}

// objectStore is the handle of a store; ErrNotFound when it does not exist.
// Handles are kept: opening one costs a call to the server.
func (c *Client) objectStore(ctx context.Context, name string) (jetstream.ObjectStore, error) {
	if s, ok := c.stores.Load(name); ok {
		return s.(jetstream.ObjectStore), nil
	}
	s, err := c.js.ObjectStore(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, fmt.Errorf("object store %s: %w", name, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", name, err)
	}
	c.stores.Store(name, s)
	return s, nil
}
