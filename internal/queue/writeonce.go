package queue

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/event"
)

// StoreResult stores the result of a request unless it has one (PROTOCOL.md
// section 6.2), and reports whether the one that is stored now is m, by its
// header event.HeaderExecution. It tries until ctx ends; an error that is not
// ctx's means that m can never be stored (ErrTooLarge).
func (c *Client) StoreResult(ctx context.Context, project, id string, m event.Message) (ours bool, err error) {
	msg := &nats.Msg{Subject: m.Subject, Header: headerOf(m.Header), Data: m.Data}
	msg.Header.Set(jetstream.MsgIDHeader, ResultMsgID(project, id))
	err = c.persist(ctx, "store result", func(ctx context.Context) error {
		ack, err := c.publish(ctx, msg, jetstream.WithExpectLastSequencePerSubject(0))
		if err == nil && !ack.Duplicate {
			ours = true
			return nil
		}
		if err != nil && !contested(err) {
			return explainStore(err)
		}
		ours, err = c.readBack(ctx, m)
		return err
	})
	return ours, err
}

// contested reports whether the server says that somebody was first, or may
// be just now.
func contested(err error) bool {
	switch apiCode(err) {
	case codeWrongLastSequence, codeWrongLastSequenceConst, codeDuplicateConflict:
		return true
	}
	return false
}

// errStillAbsent: somebody was said to be first, but nothing is stored.
var errStillAbsent = errors.New("result is contested and not stored yet")

// readBack says whose result is stored.
func (c *Client) readBack(ctx context.Context, m event.Message) (ours bool, err error) {
	have, err := c.fromLeader(ctx, c.Names.ResultsStream(), selection{LastOf: m.Subject})
	if errors.Is(err, ErrNotFound) {
		return false, errStillAbsent
	}
	if err != nil {
		return false, err
	}
	own := m.Get(event.HeaderExecution)
	return own != "" && have.Get(event.HeaderExecution) == own, nil
}

func explainStore(err error) error {
	if errors.Is(err, nats.ErrMaxPayload) || apiCode(err) == jetstream.JSErrCodeStreamMessageExceedsMaximum {
		return permanent{fmt.Errorf("%w: %w", ErrTooLarge, err)}
	}
	// A full disk or a missing stream is for an operator to mend; the result waits.
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return fmt.Errorf("refused for now: %s", api.Description)
	}
	return err
}

// Answered reports whether a request has a result, as the stream's leader knows.
func (c *Client) Answered(ctx context.Context, project, id string) (bool, error) {
	subject := c.Names.ResultSubject(project, id)
	answered := false
	err := c.persist(ctx, "look up result", func(ctx context.Context) error {
		_, err := c.fromLeader(ctx, c.Names.ResultsStream(), selection{LastOf: subject})
		answered = err == nil
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		return err
	})
	return answered, err
}
