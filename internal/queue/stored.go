package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/event"
)

// stored is one message of a stream.
type stored struct {
	event.Message
	Sequence uint64
	Time     time.Time
}

// selection says which message of a stream is wanted: a sequence, the last of
// a subject, or the first of a subject at or after a sequence.
type selection struct {
	Sequence uint64 `json:"seq,omitempty"`
	LastOf   string `json:"last_by_subj,omitempty"`
	NextOf   string `json:"next_by_subj,omitempty"`
}

// fromLeader reads a message from the stream's leader, which alone knows what
// was stored last: a direct get may be answered by a replica that lags.
// ErrNotFound when there is none.
func (c *Client) fromLeader(ctx context.Context, stream string, sel selection) (*stored, error) {
	req, err := json.Marshal(sel)
	if err != nil {
		return nil, err
	}
	reply, err := c.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, req)
	if err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	var resp struct {
		Error   *jetstream.APIError `json:"error"`
		Message *struct {
			Subject  string    `json:"subject"`
			Sequence uint64    `json:"seq"`
			Header   []byte    `json:"hdrs"`
			Data     []byte    `json:"data"`
			Time     time.Time `json:"time"`
		} `json:"message"`
	}
	if err := json.Unmarshal(reply.Data, &resp); err != nil {
		return nil, fmt.Errorf("read stream %s: %w", stream, err)
	}
	if resp.Error != nil {
		switch resp.Error.ErrorCode {
		case jetstream.JSErrCodeMessageNotFound:
			return nil, fmt.Errorf("read stream %s: %w", stream, ErrNotFound)
		case jetstream.JSErrCodeStreamNotFound:
			return nil, fmt.Errorf("%w: %s", ErrNoTopology, stream)
		}
		return nil, fmt.Errorf("read stream %s: %w", stream, resp.Error)
	}
	m := resp.Message
	header, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil && len(m.Header) > 0 {
		return nil, fmt.Errorf("read headers of message %d of stream %s: %w", m.Sequence, stream, err)
	}
	return &stored{
		Message:  event.Message{Subject: m.Subject, Header: header, Data: m.Data},
		Sequence: m.Sequence, Time: m.Time,
	}, nil
}

// direct reads the last message of a subject from whichever replica answers
// first. ErrNotFound when that one has none.
func (c *Client) direct(ctx context.Context, stream, subject string) (event.Message, error) {
	reply, err := c.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+stream+"."+subject, nil)
	if err != nil {
		return event.Message{}, fmt.Errorf("read stream %s: %w", stream, err)
	}
	switch status := reply.Header.Get("Status"); status {
	case "":
		return event.Message{Subject: reply.Header.Get(jetstream.SubjectHeader), Header: ownHeaders(reply.Header), Data: reply.Data}, nil
	case "404":
		return event.Message{}, fmt.Errorf("read stream %s: %w", stream, ErrNotFound)
	default:
		return event.Message{}, fmt.Errorf("read stream %s: status %s %s", stream, status, reply.Header.Get("Description"))
	}
}

// ownHeaders takes out what a direct get adds to a message's headers.
func ownHeaders(h nats.Header) map[string][]string {
	for _, name := range []string{
		jetstream.StreamHeader, jetstream.SequenceHeader, jetstream.TimeStampHeaer,
		jetstream.SubjectHeader, "Nats-Num-Pending", "Nats-Last-Sequence",
	} {
		delete(h, name)
	}
	return h
}

// deleteMessage removes one message of a stream; ErrNotFound when it is not
// there, which servers say in many ways.
func (c *Client) deleteMessage(ctx context.Context, stream string, sequence uint64) error {
	s, err := c.stream(ctx, stream)
	if err == nil {
		err = s.DeleteMsg(ctx, sequence)
	}
	if err == nil {
		return nil
	}
	if _, readErr := c.fromLeader(ctx, stream, selection{Sequence: sequence}); errors.Is(readErr, ErrNotFound) {
		return ErrNotFound
	}
	return err
}
