package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

const (
	// publishTimeout bounds how long a publish is tried again.
	publishTimeout = 10 * time.Second
	// storeTimeout bounds how long a large input is on its way; a slow line
	// moves event.MaxReferenced in it.
	storeTimeout = 2 * time.Minute
)

// headerRoom is what headers take of a message at most, in bytes.
const headerRoom = 8 << 10

// sender publishes requests.
type sender struct {
	client *queue.Client
	spans  trace.Spans
}

// sender makes the sender of a command.
func (s *session) sender(client *queue.Client) *sender {
	return &sender{client: client, spans: trace.NewSpans(s.telemetry.Tracer, client.Names.Prefix())}
}

// send publishes r, whose id it makes when there is none. Data that does not
// fit into a message goes into the project's store of large inputs.
func (s *sender) send(ctx context.Context, r *tool.Request) (err error) {
	if r.ID == "" {
		if r.ID, err = newID(); err != nil {
			return err
		}
	}
	ctx, span := s.spans.SendRequest(ctx, trace.Message{
		Subject: s.client.Names.RequestSubject(r.Pool, r.Priority, r.Project),
		ID:      r.ID, Source: r.Source, Type: event.TypeRequest, EventSubject: r.Name(),
	})
	defer span.End()
	r.TraceParent, r.TraceState = trace.Extension(ctx)
	m, err := s.encode(ctx, r)
	if err != nil {
		return err
	}
	return s.publish(ctx, r.Project, r.ID, m)
}

// publish publishes the message of a request with the context of ctx in its headers.
func (s *sender) publish(ctx context.Context, project, id string, m event.Message) error {
	trace.Inject(ctx, m.Header)
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := s.client.Publish(ctx, project, id, m)
	if err != nil && ctx.Err() != nil {
		return unsure(ctx, id)
	}
	return publishError(err)
}

func (s *sender) encode(ctx context.Context, r *tool.Request) (event.Message, error) {
	data, err := event.RequestData(r)
	if err != nil {
		return event.Message{}, command.Usagef("%w", err)
	}
	var m event.Message
	if len(data) <= queue.MaxRequestSize-headerRoom {
		m, err = event.EncodeRequest(r, s.client.Names.Prefix())
	} else {
		m, err = s.encodeLarge(ctx, r, data)
	}
	var invalid *tool.Error
	if errors.As(err, &invalid) {
		return m, command.Usagef("%w", err)
	}
	return m, err
}

// encodeLarge puts the data into the store and makes a claim check.
func (s *sender) encodeLarge(ctx context.Context, r *tool.Request, data []byte) (event.Message, error) {
	if len(data) > event.MaxReferenced {
		return event.Message{}, command.Usagef("the request has %d bytes: expected at most %d", len(data), event.MaxReferenced)
	}
	if _, err := event.DecodeData(data); err != nil {
		return event.Message{}, err
	}
	if err := s.storeInput(ctx, r.Project, r.ID, data); err != nil {
		return event.Message{}, err
	}
	sum := sha256.Sum256(data)
	return event.EncodeReferenced(r, s.client.Names.Prefix(), s.client.Names.InputsStore(r.Project), r.ID, hex.EncodeToString(sum[:]))
}

// storeInput puts the data of a request into its project's store.
func (s *sender) storeInput(ctx context.Context, project, id string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if _, err := s.client.Inputs().Put(ctx, project, id, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("store the large input: %w", err)
	}
	return nil
}

// unsure is the error of a publish that ctx ended: the server may have stored
// the request and not said so yet.
func unsure(ctx context.Context, id string) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &command.Error{Code: command.Unreachable, Err: fmt.Errorf("publish %s: no answer of the server within %s", id, publishTimeout)}
	}
	return &command.Error{Code: command.NoResult, Err: fmt.Errorf("interrupted while %s was published; it may be queued or not", id)}
}

// publishError gives the refusals of a publish their exit codes.
func publishError(err error) error {
	switch {
	case errors.Is(err, queue.ErrIDTaken):
		return (&command.Error{Code: command.Usage, Err: err}).WithHint("ids are never used twice; publisher result shows what became of the first")
	case errors.Is(err, queue.ErrTooLarge):
		return &command.Error{Code: command.Usage, Err: err}
	case errors.Is(err, queue.ErrUnknownPool), errors.Is(err, queue.ErrQueueFull):
		return &command.Error{Code: command.Unreachable, Err: err}
	}
	return err
}
