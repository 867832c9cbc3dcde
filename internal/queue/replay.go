package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const maxReplayStem = 100 // characters of the old id that the new one keeps

// Replay publishes the request of a dead letter again, under a new id whose
// cause is the old one (PROTOCOL.md section 6.7), and returns that id. What
// is no event is ErrNotAnEvent, or with raw published unchanged ("" is
// returned). A letter that was replayed before is ErrIDTaken.
func (c *Client) Replay(ctx context.Context, sequence uint64, raw bool) (id string, err error) {
	d, err := c.DeadLetter(ctx, sequence)
	if err != nil {
		return "", err
	}
	tokens, err := c.Names.Split(d.Request.Subject, "request", 3)
	if err != nil {
		return "", fmt.Errorf("dead letter %d: %w", sequence, err)
	}
	old, form, err := identify(d.Request)
	if err != nil {
		if !raw {
			return "", fmt.Errorf("dead letter %d: %w", sequence, ErrNotAnEvent)
		}
		return "", c.publishRaw(ctx, d.Request)
	}
	id = old[:min(len(old), maxReplayStem)] + "-r" + strconv.FormatUint(sequence, 10)
	m, err := reissue(d.Request, form, old, id)
	if err != nil {
		return "", fmt.Errorf("dead letter %d: %w", sequence, err)
	}
	if _, err := c.Publish(ctx, tokens[2], id, m); err != nil {
		return "", err
	}
	return id, nil
}

func (c *Client) publishRaw(ctx context.Context, m event.Message) error {
	msg := &nats.Msg{Subject: m.Subject, Header: replayHeaders(m.Header), Data: m.Data}
	_, err := c.publish(ctx, msg)
	return c.explainPublish(ctx, m.Subject, err)
}

// replayHeaders are the planner's: those of the server belong to the first publish.
func replayHeaders(h map[string][]string) nats.Header {
	own := nats.Header{}
	for name, values := range h {
		if len(name) < 5 || !strings.EqualFold(name[:5], "nats-") {
			own[name] = values
		}
	}
	return own
}

// eventForm is where an event has its attributes.
type eventForm int

const (
	inBody eventForm = iota
	inHeaders
)

// identify finds the id of the event in a message, without judging the rest
// of it.
func identify(m event.Message) (id string, form eventForm, err error) {
	structured := strings.HasPrefix(strings.ToLower(m.Get(event.HeaderContentType)), "application/cloudevents")
	if !structured && m.Get("ce-specversion") != "" {
		id, form = m.Get("ce-id"), inHeaders
	} else {
		err = members(m.Data, func(name string, value jsontext.Value) error {
			if name == "id" && value.Kind() == '"' {
				unquoted, err := jsontext.AppendUnquote(nil, value)
				id = string(unquoted)
				return err
			}
			return nil
		})
	}
	if err == nil && !tool.ValidName(id) {
		err = errors.New("no id")
	}
	return id, form, err
}

// reissue gives the event in a message a new id. Everything else stays as it
// was sent.
func reissue(m event.Message, form eventForm, old, id string) (event.Message, error) {
	out := event.Message{Subject: m.Subject, Header: replayHeaders(m.Header), Data: m.Data}
	if form == inHeaders {
		correlation := m.Get("ce-correlationid")
		for name := range out.Header {
			if strings.EqualFold(name, "ce-id") || strings.EqualFold(name, "ce-causationid") {
				delete(out.Header, name)
			}
		}
		out.Header["ce-id"], out.Header["ce-causationid"] = []string{id}, []string{old}
		if correlation == "" {
			out.Header["ce-correlationid"] = []string{old}
		}
		return out, nil
	}
	var b bytes.Buffer
	e := jsontext.NewEncoder(&b, jsontext.AllowDuplicateNames(true))
	correlated := false
	member := func(name string, value jsontext.Value) error {
		return errors.Join(e.WriteToken(jsontext.String(name)), e.WriteValue(value))
	}
	text := func(s string) jsontext.Value {
		quoted, _ := jsontext.AppendQuote(nil, s)
		return quoted
	}
	err := e.WriteToken(jsontext.BeginObject)
	err = errors.Join(err, member("id", text(id)), member("causationid", text(old)))
	err = errors.Join(err, members(m.Data, func(name string, value jsontext.Value) error {
		switch name {
		case "id", "causationid":
			return nil
		case "correlationid":
			correlated = true
		}
		return member(name, value)
	}))
	if !correlated {
		err = errors.Join(err, member("correlationid", text(old)))
	}
	err = errors.Join(err, e.WriteToken(jsontext.EndObject))
	out.Data = bytes.TrimRight(b.Bytes(), "\n")
	return out, err
}

// members calls f with each member of the one JSON object that data is.
func members(data []byte, f func(name string, value jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if t, err := d.ReadToken(); err != nil || t.Kind() != '{' {
		return ErrNotAnEvent
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := f(key, value); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON document")
	}
	return nil
}
