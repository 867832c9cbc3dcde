package queue

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// putObject streams r into an object and returns its size and hash.
func putObject(ctx context.Context, store jetstream.ObjectStore, name string, r io.Reader) (size int64, sum string, err error) {
	info, err := store.Put(ctx, jetstream.ObjectMeta{Name: name}, r)
	if err != nil {
		return 0, "", fmt.Errorf("store object %s: %w", name, err)
	}
	// The store's digest is of what it was given, computed while sending.
	raw, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(info.Digest, "SHA-256="))
	if err != nil || len(raw) != sha256.Size {
		return 0, "", fmt.Errorf("store object %s: digest %q: expected SHA-256", name, info.Digest)
	}
	return int64(info.Size), hex.EncodeToString(raw), nil
}

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
