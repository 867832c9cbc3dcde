package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	firstRetry = 20 * time.Millisecond
	lastRetry  = 2 * time.Second
)

// persist calls op until it succeeds, fails for good (an error that is not
// transient), or ctx ends. It waits a growing time between calls, cut short
// when the connection comes back.
func (c *Client) persist(ctx context.Context, what string, op func(context.Context) error) error {
	return c.persistWithin(ctx, what, requestTimeout, op)
}

// persistWithin is persist with a bound of its own for each call.
func (c *Client) persistWithin(ctx context.Context, what string, timeout time.Duration, op func(context.Context) error) error {
	for delay := firstRetry; ; delay = min(2*delay, lastRetry) {
		connection := c.connection()
		attempt, cancel := context.WithTimeout(ctx, timeout)
		stop := context.AfterFunc(connection, cancel)
		err := op(attempt)
		stop()
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%s: %w: %w", what, err, context.Cause(ctx))
		}
		if !transient(ctx, err) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if errors.Is(err, ErrNoTopology) || errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) {
			c.incomplete.Store(true)
		}
		c.log.Debug("retrying", "what", what, "error", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, err, context.Cause(ctx))
		case <-connection.Done():
		case <-time.After(delay/2 + rand.N(delay)):
		}
	}
}
