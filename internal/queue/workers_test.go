package queue_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

func TestWorkersRegister(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	var running atomic.Int32
	running.Store(3)
	register := func(name string) (stop func()) {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Register(ctx, func() queue.Worker {
				return queue.Worker{Name: name, Pools: []string{"default"}, Slots: 4, Running: int(running.Load()), Version: "v1", Isolation: "full"}
			})
		}()
		return func() { cancel(); <-ended }
	}
	workers := func() []queue.Worker {
		list, err := c.Workers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	stopA, stopB := register("host a.1"), register("host=a/1")
	queuetest.Until(t, "both are there", func() bool { return len(workers()) == 2 })
	w := workers()[0]
	if w.Name != "host a.1" || w.Slots != 4 || w.Running != 3 || w.Isolation != "full" || time.Since(w.Seen) > time.Minute {
		t.Errorf("%+v", w)
	}
	stopA()
	if list := workers(); len(list) != 1 || list[0].Name != "host=a/1" {
		t.Errorf("after the end of one: %+v", list)
	}
	stopB()
	if list := workers(); len(list) != 0 {
		t.Errorf("after the end of both: %+v", list)
	}
}

func TestWorkersWithoutATopology(t *testing.T) {
	s := queuetest.Start(t)
	if _, err := s.Connect(queue.Options{}).Workers(t.Context()); !errors.Is(err, queue.ErrNoTopology) {
		t.Errorf("%v", err)
	}
}
