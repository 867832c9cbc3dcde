package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	ackTimeout = 2 * time.Second
	// ackTries bounds the confirmations that a server which is connected may
	// owe: a consumer made anew answers for nothing that it did not deliver,
	// and would keep every slot of a worker waiting.
	ackTries = 5
)

// message is one delivery from a lane's consumer.
type message struct {
	jetstream.Msg
	source   *Source
	lane     *laneConsumer
	consumer string
	delivery consume.Delivery
}

func (s *Source) message(l *laneConsumer, m jetstream.Msg) (*message, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	return &message{
		Msg: m, source: s, lane: l, consumer: meta.Consumer,
		delivery: consume.Delivery{
			Sequence: meta.Sequence.Stream, Count: meta.NumDelivered,
			Stored: meta.Timestamp, Doubtful: l.doubtful(meta),
		},
	}, nil
}

// Event implements consume.Message.
func (m *message) Event() event.Message {
	return event.Message{Subject: m.Subject(), Header: m.Headers(), Data: m.Data()}
}

// Delivery implements consume.Message.
func (m *message) Delivery() consume.Delivery { return m.delivery }

// Nak implements consume.Message. What goes back at once is announced, so that
// other workers need not find it in their next sweep.
func (m *message) Nak(delay time.Duration) error {
	if err := m.NakWithDelay(delay); err != nil || delay > 0 {
		return err
	}
	names := m.source.client.Names
	tokens, err := names.Split(m.Subject(), "request", 3)
	if err == nil {
		_ = m.source.client.nc.Publish(names.WakeSubject(tokens[0], tool.Priority(tokens[1]), tokens[2]), nil)
	}
	return nil
}

// Ack implements consume.Message.
func (m *message) Ack(ctx context.Context) error {
	return m.confirm(ctx, "acknowledge request", m.DoubleAck)
}

// Term implements consume.Message.
func (m *message) Term(ctx context.Context) error {
	return m.confirm(ctx, "terminate request", func(ctx context.Context) error {
		_, err := m.source.client.nc.RequestWithContext(ctx, m.Reply(), []byte("+TERM"))
		return err
	})
}

// confirm repeats op until the server confirms it.
func (m *message) confirm(ctx context.Context, what string, op func(context.Context) error) error {
	c := m.source.client
	tries := 0
	return c.persistWithin(ctx, what, ackTimeout, func(ctx context.Context) error {
		err := op(ctx)
		if err == nil || errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil
		}
		if !c.Connected() {
			return err
		}
		if tries++; tries >= ackTries || m.orphaned() {
			m.lane.vanished()
			return permanent{fmt.Errorf("%w: %w", consume.ErrGone, err)}
		}
		return err
	})
}

// orphaned reports whether the consumer that delivered m is certainly gone.
func (m *message) orphaned() bool {
	c := m.source.client
	ctx, cancel := context.WithTimeout(context.Background(), ackTimeout)
	defer cancel()
	consumer, err := c.js.Consumer(ctx, c.Names.RequestsStream(), m.consumer)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrStreamNotFound):
		return true
	case err != nil:
		return false
	}
	return m.lane.olderThan(consumer.CachedInfo().Created)
}
