package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

func result(id, execution string) event.Message {
	return event.Message{
		Subject: "tools.result.p." + id, Header: map[string][]string{event.HeaderExecution: {execution}}, Data: []byte(execution),
	}
}

func TestFirstResultIsTheOnlyOne(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	if yes, err := c.Answered(t.Context(), "p", "a"); err != nil || yes {
		t.Fatalf("answered %v, %v", yes, err)
	}
	if ours, err := c.StoreResult(t.Context(), "p", "a", result("a", "first")); err != nil || !ours {
		t.Fatalf("first: %v, %v", ours, err)
	}
	if ours, err := c.StoreResult(t.Context(), "p", "a", result("a", "second")); err != nil || ours {
		t.Errorf("second: ours %v, %v", ours, err)
	}
	if ours, err := c.StoreResult(t.Context(), "p", "a", result("a", "first")); err != nil || !ours {
		t.Errorf("first, whose acknowledgement was lost: ours %v, %v", ours, err)
	}
	if yes, err := c.Answered(t.Context(), "p", "a"); err != nil || !yes {
		t.Errorf("answered %v, %v", yes, err)
	}
	m, err := c.Result(t.Context(), "p", "a")
	if err != nil || string(m.Data) != "first" || m.Subject != "tools.result.p.a" {
		t.Errorf("%+v, %v", m, err)
	}
	for name := range m.Header {
		if name != event.HeaderExecution && name != "Nats-Msg-Id" && name != "Nats-Expected-Last-Subject-Sequence" {
			t.Errorf("header %s is the server's", name)
		}
	}
}

func TestOneOfManyRacingResultsIsStored(t *testing.T) {
	s := queuetest.Start(t)
	var clients []*queue.Client
	for range 4 {
		clients = append(clients, s.Fleet())
	}
	for i := range 50 {
		id := fmt.Sprint(i)
		var won atomic.Int32
		var racers sync.WaitGroup
		for k, c := range clients {
			racers.Go(func() {
				ours, err := c.StoreResult(t.Context(), "p", id, result(id, fmt.Sprint(k)))
				if err != nil {
					t.Error(err)
				}
				if ours {
					won.Add(1)
				}
			})
		}
		racers.Wait()
		if won.Load() != 1 {
			t.Fatalf("result %s: %d winners", id, won.Load())
		}
	}
}

func TestResultThatIsTooLargeSaysSo(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	m := result("a", "x")
	m.Data = make([]byte, 2<<20)
	if _, err := c.StoreResult(t.Context(), "p", "a", m); !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

func TestStoreResultWaitsForItsStream(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	if err := c.JetStream().DeleteStream(t.Context(), "TOOL_RESULTS"); err != nil {
		t.Fatal(err)
	}
	stored := make(chan error, 1)
	go func() {
		_, err := c.StoreResult(t.Context(), "p", "a", result("a", "x"))
		stored <- err
	}()
	if _, err := c.Ensure(t.Context(), queue.Topology{}); err != nil {
		t.Fatal(err)
	}
	if err := <-stored; err != nil {
		t.Error(err)
	}
}

func TestWaitResult(t *testing.T) {
	s := queuetest.Start(t)
	waiter, worker := s.Fleet(), s.Fleet()
	if _, err := worker.StoreResult(t.Context(), "p", "early", result("early", "x")); err != nil {
		t.Fatal(err)
	}
	if m, err := waiter.WaitResult(t.Context(), "p", "early"); err != nil || string(m.Data) != "x" {
		t.Errorf("stored before: %+v, %v", m, err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := waiter.WaitResult(ctx, "p", "never"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("never stored: %v", err)
	}

	got := make(chan string, 1)
	go func() {
		m, err := waiter.WaitResult(t.Context(), "p", "late")
		if err != nil {
			t.Error(err)
		}
		got <- string(m.Data)
	}()
	queuetest.Until(t, "somebody waits", func() bool { return waiter.Conn().NumSubscriptions() > 0 })
	s.Restart()
	if _, err := worker.StoreResult(t.Context(), "p", "late", result("late", "y")); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r != "y" {
		t.Errorf("stored after a restart: %q", r)
	}
}

func TestWaitResultIsNotFooledByAResultThatCameSecond(t *testing.T) {
	s := queuetest.Start(t)
	waiter, rogue := s.Fleet(), s.Fleet()
	got := make(chan string, 1)
	go func() {
		m, err := waiter.WaitResult(t.Context(), "p", "a")
		if err != nil {
			t.Error(err)
		}
		got <- string(m.Data)
	}()
	queuetest.Until(t, "somebody waits", func() bool { return waiter.Conn().NumSubscriptions() > 0 })
	// Announced, but refused by the stream: it expects another sequence.
	m := result("a", "refused")
	msg := natsMsg(m)
	msg.Header.Set("Nats-Expected-Last-Subject-Sequence", "7")
	if err := rogue.Conn().PublishMsg(msg); err != nil {
		t.Fatal(err)
	}
	if err := rogue.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := rogue.StoreResult(t.Context(), "p", "a", result("a", "stored")); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r != "stored" {
		t.Errorf("got %q", r)
	}
}

func TestResultOfNobody(t *testing.T) {
	s := queuetest.Start(t)
	bare := s.Connect(queue.Options{})
	if _, err := bare.Result(t.Context(), "p", "a"); !errors.Is(err, queue.ErrNoTopology) {
		t.Errorf("no stream: %v", err)
	}
	if _, err := s.Fleet().Result(t.Context(), "p", "a"); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("no result: %v", err)
	}
}
