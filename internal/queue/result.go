package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
)

const (
	// reread bounds how late a result is seen whose announcement was missed.
	reread = 2 * time.Second
	// An announcement can be ahead of its message.
	firstReread = time.Millisecond
)

// Result is the stored result of a request; ErrNotFound when it has none.
func (c *Client) Result(ctx context.Context, project, id string) (event.Message, error) {
	subject := c.Names.ResultSubject(project, id)
	var m event.Message
	err := c.persist(ctx, "look up result", func(ctx context.Context) error {
		var err error
		m, err = c.direct(ctx, c.Names.ResultsStream(), subject)
		if errors.Is(err, ErrNotFound) {
			return permanent{err}
		}
		if errors.Is(err, nats.ErrNoResponders) {
			return c.whyNoResults(ctx, err)
		}
		return err
	})
	return m, err
}

// WaitResult waits for the result of a request until ctx ends.
func (c *Client) WaitResult(ctx context.Context, project, id string) (event.Message, error) {
	subject := c.Names.ResultSubject(project, id)
	// Subscribe first, then look: nothing falls in between. What arrives is a
	// hint only, for a result that came second is announced and never stored.
	hints := make(chan *nats.Msg, 1)
	sub, err := c.nc.ChanSubscribe(subject, hints)
	if err != nil {
		return event.Message{}, fmt.Errorf("subscribe to results: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	for delay := reread; ; {
		changed := c.change()
		m, err := c.Result(ctx, project, id)
		if err == nil || !errors.Is(err, ErrNotFound) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return event.Message{}, fmt.Errorf("wait for result of %s: %w", RequestMsgID(project, id), ctx.Err())
		case <-hints:
			delay = firstReread
		case <-changed:
		case <-time.After(delay):
			delay = min(2*delay, reread)
		}
	}
}

// whyNoResults tells a missing stream from a server that has not loaded it yet.
func (c *Client) whyNoResults(ctx context.Context, err error) error {
	have, infoErr := c.info(ctx, part{kind: KindStream, name: c.Names.ResultsStream(), stream: streamNamed(c.Names.ResultsStream())})
	if infoErr == nil && have == nil {
		return permanent{fmt.Errorf("%w: %s", ErrNoTopology, c.Names.ResultsStream())}
	}
	return err
}
