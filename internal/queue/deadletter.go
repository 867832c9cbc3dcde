package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// Headers of a dead letter (PROTOCOL.md section 6.7). Those of the request
// are kept behind a prefix: as they are they could refuse or swallow it.
const (
	deadHeaderPrefix = "Tool-Dead-Header-"
	deadCode         = "Tool-Dead-Code"
	deadReason       = "Tool-Dead-Reason"
	deadDeliveries   = "Tool-Dead-Deliveries"
	deadSubject      = "Tool-Dead-Subject"
	deadTime         = "Tool-Dead-Time"
	// deadCut says that the headers were left out, because they made the
	// message larger than the server takes.
	deadCut = "Tool-Dead-Headers-Cut"
)

// DeadLetter is a request that was put aside.
type DeadLetter struct {
	Sequence   uint64        `json:"sequence"` // of the dead letter
	Code       tool.Code     `json:"code"`
	Reason     string        `json:"reason"`
	Deliveries uint64        `json:"deliveries"`
	Time       time.Time     `json:"time"`
	Pool       string        `json:"pool"`
	Project    string        `json:"project"`
	ID         string        `json:"id,omitzero"` // of the request, when it could be read
	Size       int           `json:"size_bytes"`
	Request    event.Message `json:"-"` // as it was sent
}

// PutDeadLetter stores a request among the dead letters, at most once.
func (c *Client) PutDeadLetter(ctx context.Context, d consume.DeadLetter) error {
	msg := nats.NewMsg(c.Names.DeadSubject(d.Lane.Pool, d.Lane.Project, d.Code))
	msg.Data = d.Request.Data
	for name, values := range d.Request.Header {
		msg.Header[deadHeaderPrefix+name] = values
	}
	msg.Header.Set(jetstream.MsgIDHeader, "dead/"+strconv.FormatUint(d.Sequence, 10))
	msg.Header.Set(deadCode, string(d.Code))
	msg.Header.Set(deadReason, oneLine(d.Reason))
	msg.Header.Set(deadDeliveries, strconv.FormatUint(d.Deliveries, 10))
	msg.Header.Set(deadSubject, d.Request.Subject)
	msg.Header.Set(deadTime, time.Now().UTC().Format(time.RFC3339Nano))
	put := func(ctx context.Context) error {
		_, err := c.publish(ctx, msg)
		return explainStore(err)
	}
	err := c.persist(ctx, "store dead letter", put)
	if errors.Is(err, ErrTooLarge) {
		for name := range d.Request.Header {
			delete(msg.Header, deadHeaderPrefix+name)
		}
		msg.Header.Set(deadCut, "true")
		err = c.persist(ctx, "store dead letter", put)
	}
	return err
}

// DeadLetters calls yield for each dead letter, oldest first, until it
// returns false. project "" means all.
func (c *Client) DeadLetters(ctx context.Context, project string, yield func(DeadLetter) bool) error {
	filter := c.Names.subject("dead", "*", "*", "*")
	if project != "" {
		filter = c.Names.subject("dead", "*", project, "*")
	}
	for from := uint64(1); ; {
		m, err := c.fromLeader(ctx, c.Names.DeadLettersStream(), selection{Sequence: from, NextOf: filter})
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if !yield(c.readDeadLetter(m)) {
			return nil
		}
		from = m.Sequence + 1
	}
}

// DeadLetter reads one dead letter; ErrNotFound when there is none.
func (c *Client) DeadLetter(ctx context.Context, sequence uint64) (DeadLetter, error) {
	m, err := c.fromLeader(ctx, c.Names.DeadLettersStream(), selection{Sequence: sequence})
	if err != nil {
		return DeadLetter{}, fmt.Errorf("dead letter %d: %w", sequence, err)
	}
	return c.readDeadLetter(m), nil
}

// DropDeadLetter removes one dead letter; ErrNotFound when there is none.
func (c *Client) DropDeadLetter(ctx context.Context, sequence uint64) error {
	if err := c.deleteMessage(ctx, c.Names.DeadLettersStream(), sequence); err != nil {
		return fmt.Errorf("drop dead letter %d: %w", sequence, err)
	}
	return nil
}

func (c *Client) readDeadLetter(m *stored) DeadLetter {
	d := DeadLetter{
		Sequence: m.Sequence, Code: tool.Code(m.Get(deadCode)), Reason: m.Get(deadReason), Time: m.Time,
		Pool: Unknown, Project: Unknown, Size: len(m.Data),
		Request: event.Message{Subject: m.Get(deadSubject), Header: map[string][]string{}, Data: m.Data},
	}
	d.Deliveries, _ = strconv.ParseUint(m.Get(deadDeliveries), 10, 64)
	if t, err := time.Parse(time.RFC3339Nano, m.Get(deadTime)); err == nil {
		d.Time = t
	}
	if tokens, err := c.Names.Split(m.Subject, "dead", 3); err == nil {
		d.Pool, d.Project = tokens[0], tokens[1]
	}
	for name, values := range m.Header {
		if own, ok := strings.CutPrefix(name, deadHeaderPrefix); ok {
			d.Request.Header[own] = values
		}
	}
	if id, _, err := identify(d.Request); err == nil {
		d.ID = id
	}
	return d
}

// oneLine makes s fit into a header.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}
