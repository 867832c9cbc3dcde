package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// Receipt says where a request was stored.
type Receipt struct {
	Stream   string `json:"stream"`
	Sequence uint64 `json:"sequence"`
}

// Publish stores one request. project and id make its Nats-Msg-Id; the errors
// of the connection are retried under it until ctx ends. A request that was
// there before the first try is ErrIDTaken.
func (c *Client) Publish(ctx context.Context, project, id string, m event.Message) (Receipt, error) {
	if err := c.checkRequest(m.Subject, project, id); err != nil {
		return Receipt{}, fmt.Errorf("publish request: %w", err)
	}
	msg := &nats.Msg{Subject: m.Subject, Header: headerOf(m.Header), Data: m.Data}
	msg.Header.Set(jetstream.MsgIDHeader, RequestMsgID(project, id))
	var ack *jetstream.PubAck
	first, answered := true, false
	err := c.persist(ctx, "publish request", func(ctx context.Context) error {
		var err error
		ack, err = c.publish(ctx, msg, jetstream.WithExpectStream(c.Names.RequestsStream()))
		answered = first && err == nil
		first = false
		return c.explainPublish(ctx, m.Subject, err)
	})
	if err != nil {
		return Receipt{}, err
	}
	if ack.Duplicate && answered {
		return Receipt{}, fmt.Errorf("publish request %s: %w", RequestMsgID(project, id), ErrIDTaken)
	}
	return Receipt{Stream: ack.Stream, Sequence: ack.Sequence}, nil
}

// checkRequest refuses what would not even be a message of NATS.
func (c *Client) checkRequest(subject, project, id string) error {
	tokens, err := c.Names.Split(subject, "request", 3)
	if err != nil {
		return err
	}
	for i, member := range [...]string{"pool", "priority", "project"} {
		if err := tool.CheckName(member, tokens[i]); err != nil {
			return err
		}
	}
	if tokens[2] != project {
		return fmt.Errorf("subject %q: expected project %q", subject, project)
	}
	return tool.CheckName("id", id)
}

// permanent marks an error that looks transient and is not.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// explainPublish turns refusals of the requests stream into our errors.
func (c *Client) explainPublish(ctx context.Context, subject string, err error) error {
	var api *jetstream.APIError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload):
		return permanent{ErrTooLarge}
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.Is(err, nats.ErrNoResponders):
		return c.whyNoStream(ctx, subject, err)
	case !errors.As(err, &api):
		return err
	case api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return permanent{fmt.Errorf("%w: the limit is %d bytes with headers (hint: dataref)", ErrTooLarge, MaxRequestSize)}
	case api.ErrorCode == codeMaxMsgs:
		return permanent{fmt.Errorf("%w: %s", ErrQueueFull, api.Description)}
	}
	return err
}

// whyNoStream tells a subject that no stream takes from a server that has not
// loaded its streams yet.
func (c *Client) whyNoStream(ctx context.Context, subject string, err error) error {
	s, infoErr := c.js.Stream(ctx, c.Names.RequestsStream())
	if errors.Is(infoErr, jetstream.ErrStreamNotFound) {
		return permanent{fmt.Errorf("%w: %s", ErrNoTopology, c.Names.RequestsStream())}
	}
	if infoErr != nil {
		return err
	}
	tokens, splitErr := c.Names.Split(subject, "request", 3)
	if splitErr != nil {
		return permanent{splitErr}
	}
	lane := c.Names.RequestSubject(tokens[0], tool.Priority(tokens[1]), "*")
	for _, taken := range s.CachedInfo().Config.Subjects {
		if taken == lane {
			return err
		}
	}
	return permanent{fmt.Errorf("%w: pool %q, priority %q (hint: publisher topology add-pool %s)", ErrUnknownPool, tokens[0], tokens[1], tokens[0])}
}

// headerOf copies headers into the form of NATS, so that a retry sends the same.
func headerOf(h map[string][]string) nats.Header {
	copied := make(nats.Header, len(h)+2)
	for name, values := range h {
		if !strings.HasPrefix(name, "Nats-Expected-") { // the stream's own business
			copied[name] = values
		}
	}
	return copied
}
