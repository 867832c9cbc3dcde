package queue_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

func dead(sequence uint64, m event.Message) consume.DeadLetter {
	return consume.DeadLetter{
		Request: m, Lane: consume.Lane{Pool: "default", Priority: tool.Normal, Project: "p"},
		Sequence: sequence, Deliveries: 3, Code: tool.Internal, Reason: "two\r\nlines",
	}
}

func TestDeadLetterKeepsTheRequest(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	m := message(lane, `{"id":"r-1"}`)
	m.Header["Nats-Msg-Id"] = []string{"p/r-1"}
	m.Header["Nats-Expected-Stream"] = []string{"TOOL_REQUESTS"} // would refuse it
	m.Header["X-Twice"] = []string{"a", "b"}
	for range 2 { // a repetition is the same letter
		if err := c.PutDeadLetter(t.Context(), dead(7, m)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.PutDeadLetter(t.Context(), dead(8, message("tools.request.default.low.q", "noise"))); err != nil {
		t.Fatal(err)
	}
	var letters []queue.DeadLetter
	if err := c.DeadLetters(t.Context(), "", func(d queue.DeadLetter) bool { letters = append(letters, d); return true }); err != nil {
		t.Fatal(err)
	}
	if len(letters) != 2 {
		t.Fatalf("letters %+v", letters)
	}
	d := letters[0]
	if d.Code != tool.Internal || d.Reason != "two  lines" || d.Deliveries != 3 || d.Pool != "default" || d.Project != "p" ||
		d.ID != "r-1" || time.Since(d.Time) > time.Minute || d.Request.Subject != lane || string(d.Request.Data) != `{"id":"r-1"}` {
		t.Errorf("%+v", d)
	}
	if fmt.Sprint(d.Request.Header["X-Twice"]) != "[a b]" || d.Request.Get("Nats-Msg-Id") != "p/r-1" {
		t.Errorf("headers %v", d.Request.Header)
	}
	if letters[1].ID != "" {
		t.Errorf("noise has the id %s", letters[1].ID)
	}
	if one, err := c.DeadLetter(t.Context(), d.Sequence); err != nil || one.ID != "r-1" {
		t.Errorf("%+v, %v", one, err)
	}
	if err := c.DropDeadLetter(t.Context(), d.Sequence); err != nil {
		t.Error(err)
	}
	for _, err := range []error{c.DropDeadLetter(t.Context(), d.Sequence), c.DropDeadLetter(t.Context(), 99)} {
		if !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("dropped twice: %v", err)
		}
	}
	if _, err := c.DeadLetter(t.Context(), d.Sequence); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("read after it was dropped: %v", err)
	}
}

func TestDeadLetterOfAnyRequestFits(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	m := message(lane, strings.Repeat("x", 256<<10))
	for i := range 30_000 {
		m.Header[fmt.Sprint("h", i)] = []string{""}
	}
	if err := c.PutDeadLetter(t.Context(), dead(1, m)); err != nil {
		t.Fatal(err)
	}
	if d, err := c.DeadLetter(t.Context(), 1); err != nil || d.Size != 256<<10 || len(d.Request.Header) != 0 {
		t.Errorf("%d bytes, %d headers, %v", d.Size, len(d.Request.Header), err)
	}
}

func TestReplay(t *testing.T) {
	old := strings.Repeat("i", 128)
	structured := fmt.Sprintf(`{"specversion":"1.0","id":%q,"causationid":"x","type":"t","data":{"id":"inner","n":9007199254740993}}`, old)
	binary := message(lane, `{"id":"inner"}`)
	binary.Header = map[string][]string{"ce-specversion": {"1.0"}, "Ce-Id": {"b"}, "ce-correlationid": {"c-1"}, "Nats-Msg-Id": {"p/b"}}
	s := queuetest.Start(t)
	c := s.Fleet()
	for i, m := range []event.Message{message(lane, structured), binary, message(lane, "noise")} {
		if err := c.PutDeadLetter(t.Context(), dead(uint64(i+1), m)); err != nil {
			t.Fatal(err)
		}
	}

	id, err := c.Replay(t.Context(), 1, false)
	if err != nil || id != old[:100]+"-r1" || !tool.ValidName(id) {
		t.Fatalf("%s, %v", id, err)
	}
	m := next(t, c)
	var e map[string]json.RawMessage
	if err := json.Unmarshal(m.Data, &e); err != nil {
		t.Fatal(err)
	}
	if string(e["id"]) != `"`+id+`"` || string(e["causationid"]) != `"`+old+`"` || string(e["correlationid"]) != `"`+old+`"` ||
		string(e["data"]) != `{"id":"inner","n":9007199254740993}` || m.Header.Get("Nats-Msg-Id") != "p/"+id {
		t.Errorf("replayed %s with %v", m.Data, m.Header)
	}
	if _, err := c.Replay(t.Context(), 1, false); !errors.Is(err, queue.ErrIDTaken) {
		t.Errorf("replayed twice: %v", err)
	}

	if id, err = c.Replay(t.Context(), 2, false); err != nil || id != "b-r2" {
		t.Fatalf("%s, %v", id, err)
	}
	m = next(t, c)
	if m.Header.Get("ce-id") != "b-r2" || m.Header.Get("ce-causationid") != "b" || m.Header.Get("ce-correlationid") != "c-1" ||
		m.Header["Ce-Id"] != nil || string(m.Data) != `{"id":"inner"}` {
		t.Errorf("replayed %s with %v", m.Data, m.Header)
	}

	if _, err = c.Replay(t.Context(), 3, false); !errors.Is(err, queue.ErrNotAnEvent) {
		t.Errorf("noise: %v", err)
	}
	if id, err = c.Replay(t.Context(), 3, true); err != nil || id != "" {
		t.Fatalf("raw: %s, %v", id, err)
	}
	if m = next(t, c); string(m.Data) != "noise" || m.Subject != lane {
		t.Errorf("replayed %s on %s", m.Data, m.Subject)
	}
	if _, err = c.Replay(t.Context(), 99, true); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("no letter: %v", err)
	}
}

// next takes the next request out of the queue.
func next(t *testing.T, c *queue.Client) *nats.Msg {
	t.Helper()
	source := c.Source(queue.Topology{Names: c.Names}, 1)
	var got *nats.Msg
	n, err := source.Fetch(consume.Lane{Pool: "default", Priority: tool.Normal, Project: "p"}, 1, 5*time.Second, func(m consume.Message) {
		e := m.Event()
		got = &nats.Msg{Subject: e.Subject, Header: e.Header, Data: e.Data}
		if err := m.Ack(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err != nil || n != 1 {
		t.Fatalf("%d messages, %v", n, err)
	}
	return got
}
