package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	findBatch      = 500
	findBatchBytes = 8 << 20
)

// Find implements consume.Finder: it reads the requests of a project from the
// stream, in batches, until all ids are found.
func (c *Client) Find(ctx context.Context, project string, ids map[string]struct{}, found func(id string, q consume.Queued)) error {
	filter := c.Names.RequestSubject("*", "*", project)
	subjects, err := c.subjects(ctx, c.Names.RequestsStream(), filter)
	if err != nil || len(subjects) == 0 {
		return err
	}
	wanted := maps.Clone(ids)
	for from := uint64(1); len(wanted) > 0; {
		next, err := c.readBatch(ctx, filter, from, func(m stored) {
			id := c.requestID(project, m)
			if _, ok := wanted[id]; !ok {
				return
			}
			delete(wanted, id)
			found(id, c.queued(m))
		})
		if err != nil || next == 0 {
			return err
		}
		from = next
	}
	return nil
}

// requestID is the id of a request in the queue, "" when it cannot be read.
// A planner that left Nats-Msg-Id out has it in the event alone.
func (c *Client) requestID(project string, m stored) string {
	if id, ok := strings.CutPrefix(m.Get(jetstream.MsgIDHeader), project+"/"); ok {
		return id
	}
	if r, _ := event.DecodeRequest(m.Message, c.Names.Prefix()); r != nil {
		return r.ID
	}
	return ""
}

// readBatch reads messages of the requests stream from a sequence on, and
// returns where to go on; 0 at the end.
func (c *Client) readBatch(ctx context.Context, filter string, from uint64, yield func(stored)) (next uint64, err error) {
	request, err := json.Marshal(map[string]any{
		"seq": from, "next_by_subj": filter, "batch": findBatch, "max_bytes": findBatchBytes,
	})
	if err != nil {
		return 0, err
	}
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return 0, fmt.Errorf("read requests: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest("$JS.API.DIRECT.GET."+c.Names.RequestsStream(), inbox, request); err != nil {
		return 0, fmt.Errorf("read requests: %w", err)
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return 0, fmt.Errorf("read requests: %w", err)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
			s := storedOf(m)
			next = s.Sequence + 1
			yield(s)
		case "204": // the end of the batch
			if m.Header.Get("Nats-Num-Pending") == "0" {
				return 0, nil
			}
			return next, nil
		case "404":
			return 0, nil
		default:
			return 0, fmt.Errorf("read requests: status %s %s", status, m.Header.Get("Description"))
		}
	}
}

// storedOf reads a message as a direct get hands it out.
func storedOf(m *nats.Msg) stored {
	sequence, _ := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	subject := m.Header.Get(jetstream.SubjectHeader)
	return stored{Message: event.Message{Subject: subject, Header: ownHeaders(m.Header), Data: m.Data}, Sequence: sequence}
}

func (c *Client) queued(m stored) consume.Queued {
	q := consume.Queued{Request: m.Message}
	if tokens, err := c.Names.Split(m.Subject, "request", 3); err == nil {
		q.Lane = consume.Lane{Pool: tokens[0], Priority: tool.Priority(tokens[1]), Project: tokens[2]}
	}
	q.Remove = func(ctx context.Context) error { return c.removeRequest(ctx, m) }
	return q
}

// removeRequest deletes a message from the requests stream, if it is still
// the one that was read: a stream made anew counts from one again.
func (c *Client) removeRequest(ctx context.Context, m stored) error {
	have, err := c.fromLeader(ctx, c.Names.RequestsStream(), selection{Sequence: m.Sequence})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if have.Subject != m.Subject || have.Get(jetstream.MsgIDHeader) != m.Get(jetstream.MsgIDHeader) {
		return nil
	}
	err = c.deleteMessage(ctx, c.Names.RequestsStream(), m.Sequence)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("remove request %d: %w", m.Sequence, err)
	}
	return nil
}
