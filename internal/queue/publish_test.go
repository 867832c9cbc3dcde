package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

func message(subject, body string) event.Message {
	return event.Message{Subject: subject, Header: map[string][]string{"content-type": {"application/cloudevents+json"}}, Data: []byte(body)}
}

const lane = "tools.request.default.normal.p"

func TestPublishOnce(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	receipt, err := c.Publish(t.Context(), "p", "a", message(lane, "{}"))
	if err != nil || receipt.Stream != "TOOL_REQUESTS" || receipt.Sequence != 1 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if _, err = c.Publish(t.Context(), "p", "a", message(lane, "{}")); !errors.Is(err, queue.ErrIDTaken) {
		t.Errorf("same id: %v", err)
	}
	if _, err = c.Publish(t.Context(), "q", "a", message("tools.request.default.low.q", "{}")); err != nil {
		t.Errorf("same id in another project: %v", err)
	}
}

// The first call on a new connection is answered as such: nothing of the
// connection's own start interrupts it and makes it a second try.
func TestPublishOnNewConnection(t *testing.T) {
	s := queuetest.Start(t)
	if _, err := s.Fleet().Publish(t.Context(), "p", "a", message(lane, "{}")); err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		c := s.Connect(queue.Options{})
		if _, err := c.Publish(t.Context(), "p", "a", message(lane, "{}")); !errors.Is(err, queue.ErrIDTaken) {
			t.Fatalf("connection %d: %v, want ErrIDTaken", i, err)
		}
		c.Close()
	}
}

func TestPublishRefusals(t *testing.T) {
	s := queuetest.Start(t)
	bare := s.Connect(queue.Options{})
	if _, err := bare.Publish(t.Context(), "p", "a", message(lane, "{}")); !errors.Is(err, queue.ErrNoTopology) {
		t.Errorf("no stream: %v", err)
	}
	c := s.Fleet()
	for subject, want := range map[string]error{
		"tools.request.gpu.normal.p":     queue.ErrUnknownPool,
		"tools.request.default.urgent.p": queue.ErrUnknownPool,
	} {
		if _, err := c.Publish(t.Context(), "p", "b", message(subject, "{}")); !errors.Is(err, want) {
			t.Errorf("%s: %v, expected %v", subject, err, want)
		}
	}
	for want, r := range map[string][3]string{
		`project "a b"`:                {"tools.request.default.normal.a b", "a b", "a"},
		`id "a.b"`:                     {lane, "p", "a.b"},
		`expected project "q"`:         {lane, "q", "a"},
		"expected tools.request and 3": {"tools.request.default.normal", "normal", "a"},
	} {
		if _, err := c.Publish(t.Context(), r[1], r[2], message(r[0], "{}")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, expected %s", r, err, want)
		}
	}
	for _, size := range []int{queue.MaxRequestSize, 2 << 20} {
		if _, err := c.Publish(t.Context(), "p", "c", message(lane, strings.Repeat("x", size))); !errors.Is(err, queue.ErrTooLarge) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestFullQueueRefusesThePublisher(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgsPerSubject = 2
	if _, err := c.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		_, err = c.Publish(t.Context(), "p", fmt.Sprint(i), message(lane, "{}"))
	}
	if !errors.Is(err, queue.ErrQueueFull) {
		t.Errorf("third of two: %v", err)
	}
	if _, err := c.Publish(t.Context(), "q", "a", message("tools.request.default.normal.q", "{}")); err != nil {
		t.Errorf("another project: %v", err)
	}
	cfg.MaxMsgs = 3
	if _, err := c.JetStream().UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Publish(t.Context(), "q", "b", message("tools.request.default.normal.q", "{}")); !errors.Is(err, queue.ErrQueueFull) {
		t.Errorf("fourth of three: %v", err)
	}
}

func TestPublishOutlastsARestart(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	s.Stop()
	published := make(chan error, 1)
	go func() {
		_, err := c.Publish(t.Context(), "p", "a", message(lane, "{}"))
		published <- err
	}()
	s.Start()
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	stream, err := c.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
	if err != nil || stream.CachedInfo().State.Msgs != 1 {
		t.Errorf("%+v, %v", stream.CachedInfo().State, err)
	}
}

func TestPublishEndsWithItsContext(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	s.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := c.Publish(ctx, "p", "a", message(lane, "{}")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestWakeUpCarriesTheHeadersOnly(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	sub, err := c.Conn().SubscribeSync("tools.wake.>")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if _, err := c.Publish(t.Context(), "p", "a", message(lane, `{"secret":1}`)); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(10 * time.Second)
	if err != nil || m.Subject != "tools.wake.default.normal.p" || len(m.Data) != 0 || m.Header.Get(jetstream.MsgIDHeader) != "p/a" {
		t.Errorf("%+v, %v", m, err)
	}
}
