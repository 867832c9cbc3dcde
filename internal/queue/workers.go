package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

// registerInterval leaves two chances before an entry expires.
const registerInterval = 10 * time.Second

// Worker is what a live worker says of itself.
type Worker struct {
	Name      string         `json:"name"`
	Pools     []string       `json:"pools"`
	Slots     int            `json:"slots"`
	Running   int            `json:"running"`
	Version   string         `json:"version"`
	Isolation tool.Isolation `json:"isolation"`
	Started   time.Time      `json:"started"`
	Draining  bool           `json:"draining,omitzero"`
	Seen      time.Time      `json:"seen,omitzero"` // filled in by Workers
}

// Register keeps a worker in the registry until ctx ends, then takes it out.
// It calls now for every entry. Trouble with the server is logged only: a
// worker serves without being seen.
func (c *Client) Register(ctx context.Context, now func() Worker) {
	key := workerKey(now().Name)
	ticker := time.NewTicker(registerInterval)
	defer ticker.Stop()
	for {
		if err := c.putWorker(ctx, key, now()); err != nil && ctx.Err() == nil {
			c.log.Warn("register worker", "error", err)
		}
		select {
		case <-ctx.Done():
			c.unregister(key)
			return
		case <-ticker.C:
		}
	}
}

// Workers lists the workers that are alive, by name.
func (c *Client) Workers(ctx context.Context) ([]Worker, error) {
	kv, err := c.js.KeyValue(ctx, c.Names.WorkersBucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoTopology, c.Names.WorkersBucket())
	}
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	keys, err := kv.ListKeys(ctx)
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	var workers []Worker
	for key := range keys.Keys() {
		e, err := kv.Get(ctx, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("read worker %s: %w", key, err)
		}
		var w Worker
		if err := json.Unmarshal(e.Value(), &w); err != nil {
			return nil, fmt.Errorf("read worker %s: %w", key, err)
		}
		w.Seen = e.Created()
		workers = append(workers, w)
	}
	slices.SortFunc(workers, func(a, b Worker) int { return cmp.Compare(a.Name, b.Name) })
	return workers, nil
}

func (c *Client) putWorker(ctx context.Context, key string, w Worker) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	kv, err := c.js.KeyValue(ctx, c.Names.WorkersBucket())
	if err != nil {
		return err
	}
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	_, err = kv.Put(ctx, key, data)
	return err
}

// unregister runs when ctx has ended already: the entry would expire by
// itself, but nobody should wait for that.
func (c *Client) unregister(key string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if kv, err := c.js.KeyValue(ctx, c.Names.WorkersBucket()); err == nil {
		_ = kv.Purge(ctx, key)
	}
}

// workerKey makes a key of a worker's name, which may hold any character.
func workerKey(name string) string {
	var key strings.Builder
	for _, b := range []byte(name) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', b == '-', b == '_':
			key.WriteByte(b)
		default:
			fmt.Fprintf(&key, "=%02X", b)
		}
	}
	return cmp.Or(key.String(), "=")
}
