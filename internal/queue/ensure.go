package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

const maxEnsureTries = 10

// TopologyError lists differences that a worker cannot serve with.
type TopologyError struct{ Differences []Difference }

func (e *TopologyError) Error() string {
	lines := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		lines[i] = d.String()
	}
	return strings.Join(lines, "; ") + " (hint: publisher topology show)"
}

// Ensure is what a worker does at its start and when a stream vanished: it
// creates what is missing, adds its pools and verifies the rest. Differences
// that it can serve with are returned, the others are a *TopologyError. The
// replicas of what exists are the operator's.
func (c *Client) Ensure(ctx context.Context, t Topology) ([]Difference, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	var mild, fatal []Difference
	for _, p := range t.parts() {
		diffs, err := c.ensurePart(ctx, t, p)
		if err != nil {
			return nil, err
		}
		for _, d := range diffs {
			switch {
			case d.Fatal:
				fatal = append(fatal, d)
			case d.Setting != "replicas":
				mild = append(mild, d)
			}
		}
	}
	if len(fatal) > 0 {
		return mild, &TopologyError{fatal}
	}
	return mild, nil
}

// Apply creates what is missing and changes what can be changed; it returns
// what is different still, because the part would have to be made anew.
func (c *Client) Apply(ctx context.Context, t Topology) ([]Difference, error) {
	if err := t.validate(); err != nil {
		return nil, err
	}
	for _, p := range t.parts() {
		have, err := c.info(ctx, p)
		if err == nil && have == nil {
			err = c.create(ctx, p)
		} else if err == nil && len(p.diff(have)) > 0 {
			err = c.update(ctx, p, have)
		}
		if err != nil {
			return nil, err
		}
	}
	return c.Diff(ctx, t)
}

// AddPool makes the requests stream take requests for one more pool.
func (c *Client) AddPool(ctx context.Context, pool string) error {
	if err := tool.CheckName("pool", pool); err != nil {
		return err
	}
	return c.addSubjects(ctx, Topology{Names: c.Names, Pools: []string{pool}})
}

func (t Topology) validate() error {
	if err := t.Names.Validate(); err != nil {
		return err
	}
	for _, pool := range t.Pools {
		if err := tool.CheckName("pool", pool); err != nil {
			return err
		}
	}
	if t.Replicas < 0 || t.Replicas > 5 {
		return fmt.Errorf("replicas %d: expected 1 to 5", t.Replicas)
	}
	return nil
}

// ensurePart creates a part or adds to it what is this worker's. Others may do
// the same for themselves meanwhile, so the outcome is looked at again.
func (c *Client) ensurePart(ctx context.Context, t Topology, p part) ([]Difference, error) {
	for try := 0; ; try++ {
		have, err := c.info(ctx, p)
		switch {
		case err != nil:
			return nil, err
		case have == nil && try < maxEnsureTries:
			if err := c.create(ctx, p); err != nil {
				return nil, err
			}
			c.log.Info("created", "kind", string(p.kind), "name", p.name)
		case have != nil && try < maxEnsureTries && len(missingSubjects(p.stream.Subjects, have.Config.Subjects)) > 0 &&
			p.stream.Name == t.Names.RequestsStream():
			if err := c.addSubjects(ctx, t); err != nil {
				return nil, err
			}
			c.log.Info("pools added", "stream", p.name, "pools", t.pools())
		default:
			return p.diff(have), nil
		}
	}
}

// create makes a part; one that another worker made meanwhile is as good.
func (c *Client) create(ctx context.Context, p part) error {
	var err error
	switch p.kind {
	case KindBucket:
		_, err = c.js.CreateKeyValue(ctx, p.kv)
	case KindStore:
		_, err = c.js.CreateObjectStore(ctx, p.store)
	case KindStream:
		_, err = c.js.CreateStream(ctx, p.stream)
	}
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) || errors.Is(err, jetstream.ErrBucketExists) {
		return nil
	}
	if apiCode(err) == codeStorageFull {
		return fmt.Errorf("create %s %s: %w (hint: the account's or server's storage limit is below what the streams may hold)", p.kind, p.name, err)
	}
	if err != nil {
		return fmt.Errorf("create %s %s: %w", p.kind, p.name, err)
	}
	return nil
}

// update changes what differs and can be changed, and leaves alone what the
// fleet does not care about.
func (c *Client) update(ctx context.Context, p part, have *jetstream.StreamInfo) error {
	cfg := have.Config
	want := p.stream
	cfg.MaxAge, cfg.Replicas = want.MaxAge, want.Replicas
	if p.kind == KindBucket {
		cfg.MaxMsgsPerSubject = want.MaxMsgsPerSubject
	}
	if p.kind == KindStream {
		cfg.Subjects = union(have.Config.Subjects, want.Subjects)
		cfg.Discard, cfg.DiscardNewPerSubject = want.Discard, want.DiscardNewPerSubject
		cfg.Duplicates, cfg.RePublish, cfg.AllowDirect = want.Duplicates, want.RePublish, want.AllowDirect
		cfg.MaxMsgs, cfg.MaxBytes = want.MaxMsgs, want.MaxBytes
		cfg.MaxMsgsPerSubject, cfg.MaxMsgSize = want.MaxMsgsPerSubject, want.MaxMsgSize
	}
	if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("change %s %s: %w", p.kind, p.name, err)
	}
	return nil
}

// addSubjects adds the pools of t. Two who add at once could undo each other,
// so the outcome is read back.
func (c *Client) addSubjects(ctx context.Context, t Topology) error {
	name := t.Names.RequestsStream()
	for range maxEnsureTries {
		s, err := c.js.Stream(ctx, name)
		if err != nil {
			return fmt.Errorf("look up stream %s: %w", name, err)
		}
		cfg := s.CachedInfo().Config
		want := union(cfg.Subjects, t.requestSubjects())
		if len(want) == len(cfg.Subjects) {
			return nil
		}
		cfg.Subjects = want
		if _, err := c.js.UpdateStream(ctx, cfg); err != nil {
			return fmt.Errorf("add pools %s to stream %s: %w (hint: publisher topology add-pool)", strings.Join(t.pools(), ", "), name, err)
		}
	}
	return fmt.Errorf("add pools %s to stream %s: others keep changing it", strings.Join(t.pools(), ", "), name)
}

func union(a, b []string) []string {
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}
