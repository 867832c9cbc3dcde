package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
)

// arrivals hands the results of one project to those who expect them, with
// one subscription for all.
type arrivals struct {
	sub *nats.Subscription

	mu       sync.Mutex
	expected map[string]chan event.Message
}

func newArrivals(client *queue.Client, project string) (*arrivals, error) {
	a := &arrivals{expected: map[string]chan event.Message{}}
	var err error
	a.sub, err = client.Conn().Subscribe(client.Names.ResultSubject(project, "*"), a.arrive)
	if err != nil {
		return nil, fmt.Errorf("subscribe to results: %w", err)
	}
	if err := client.Conn().FlushTimeout(connectTimeout); err != nil {
		return nil, fmt.Errorf("subscribe to results: %w", err)
	}
	return a, nil
}

func (a *arrivals) close() { _ = a.sub.Unsubscribe() }

// expect gives the channel that the result of a request will arrive on.
func (a *arrivals) expect(id string) <-chan event.Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := make(chan event.Message, 1)
	a.expected[id] = c
	return c
}

func (a *arrivals) forget(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.expected, id)
}

func (a *arrivals) arrive(m *nats.Msg) {
	id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]
	a.mu.Lock()
	defer a.mu.Unlock()
	if c, ok := a.expected[id]; ok {
		delete(a.expected, id)
		c <- event.Message{Subject: m.Subject, Header: m.Header, Data: m.Data}
	}
}
