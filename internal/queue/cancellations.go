package queue

import (
	"context"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Cancel asks for the cancellation of a request.
func (c *Client) Cancel(ctx context.Context, project, id string) error {
	msg := nats.NewMsg(c.Names.CancelSubject(project, id))
	return c.persist(ctx, "publish cancellation", func(ctx context.Context) error {
		_, err := c.publish(ctx, msg, jetstream.WithExpectStream(c.Names.CancellationsStream()))
		return err
	})
}

// Cancellations is the set of requests that were cancelled. It is fed by a
// subscription, and by the stream at the start and after every reconnect: a
// watch of the stream alone stays blind for seconds after a restart of the
// server. It implements consume.Cancellations.
type Cancellations struct {
	client *Client

	mu     sync.Mutex
	known  map[request]struct{}
	listen func(project, id string)
}

// request names one request of the fleet.
type request struct{ project, id string }

// Cancellations makes the set; it is empty until Run.
func (c *Client) Cancellations() *Cancellations {
	return &Cancellations{client: c, known: map[request]struct{}{}}
}

// Run feeds the set until ctx ends, and calls heard for every cancellation
// that it did not know.
func (s *Cancellations) Run(ctx context.Context, heard func(project, id string)) error {
	c := s.client
	s.mu.Lock()
	s.listen = heard
	s.mu.Unlock()
	sub, err := c.nc.Subscribe(c.Names.CancelSubject("*", "*"), func(m *nats.Msg) { s.add(m.Subject) })
	if err != nil {
		return fmt.Errorf("subscribe to cancellations: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for {
		changed := c.change()
		if c.Connected() {
			if err := s.load(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// load adds what the stream holds. The subjects say it all.
func (s *Cancellations) load(ctx context.Context) error {
	c := s.client
	return c.persist(ctx, "load cancellations", func(ctx context.Context) error {
		if err := c.nc.FlushWithContext(ctx); err != nil { // the subscription is in force
			return err
		}
		subjects, err := c.subjects(ctx, c.Names.CancellationsStream(), c.Names.CancelSubject("*", "*"))
		for subject := range subjects {
			s.add(subject)
		}
		return err
	})
}

// Cancelled reports whether a request is in the set.
func (s *Cancellations) Cancelled(project, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[request{project, id}]
	return ok
}

// Forget takes a request out that is settled: its result stands.
func (s *Cancellations) Forget(project, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, request{project, id})
}

func (s *Cancellations) add(subject string) {
	tokens, err := s.client.Names.Split(subject, "cancel", 2)
	if err != nil {
		return
	}
	r := request{tokens[0], tokens[1]}
	s.mu.Lock()
	_, known := s.known[r]
	s.known[r] = struct{}{}
	listen := s.listen
	s.mu.Unlock()
	if !known && listen != nil {
		listen(r.project, r.id)
	}
}
