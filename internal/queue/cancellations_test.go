package queue_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

// watchCancellations runs a set until the test ends, and passes on what it hears.
func watchCancellations(t *testing.T, c *queue.Client) (*queue.Cancellations, chan string) {
	t.Helper()
	set := c.Cancellations()
	heard := make(chan string, 100)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := set.Run(ctx, func(project, id string) { heard <- project + "/" + id }); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return set, heard
}

func TestCancellationsAreHeard(t *testing.T) {
	s := queuetest.Start(t)
	planner, worker := s.Fleet(), s.Fleet()
	if err := planner.Cancel(t.Context(), "p", "before"); err != nil {
		t.Fatal(err)
	}
	set, heard := watchCancellations(t, worker)
	if got := <-heard; got != "p/before" {
		t.Errorf("heard %s", got)
	}
	for range 2 { // said twice, heard once
		if err := planner.Cancel(t.Context(), "p", "after"); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-heard; got != "p/after" || !set.Cancelled("p", "after") || !set.Cancelled("p", "before") || set.Cancelled("q", "after") {
		t.Errorf("heard %s", got)
	}
	set.Forget("p", "before")
	if set.Cancelled("p", "before") || len(heard) != 0 {
		t.Errorf("forgotten one is known; heard %d more", len(heard))
	}
}

func TestCancellationsDuringAnOutageAreHeardAfterIt(t *testing.T) {
	s := queuetest.Start(t)
	worker := s.Fleet()
	_, heard := watchCancellations(t, worker)
	if err := worker.Cancel(t.Context(), "p", "first"); err != nil {
		t.Fatal(err)
	}
	<-heard
	s.Stop()
	queuetest.Until(t, "the connection is lost", func() bool { return !worker.Connected() })
	done := make(chan error, 1)
	go func() { done <- s.FleetLater().Cancel(context.Background(), "p", "meanwhile") }()
	s.Start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for got := range heard {
		if got == "p/meanwhile" {
			break
		}
	}
}

func TestFind(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet("default", "gpu")
	const n = 1200 // more than two batches
	for i := range n {
		subject := []string{"tools.request.default.high.p", "tools.request.gpu.low.p", "tools.request.default.normal.other"}[i%3]
		project := []string{"p", "p", "other"}[i%3]
		if _, err := c.Publish(t.Context(), project, fmt.Sprint(i), message(subject, fmt.Sprint("body ", i))); err != nil {
			t.Fatal(err)
		}
	}
	wanted := map[string]struct{}{"0": {}, "1198": {}, "600": {}, "1199": {} /* another project's */, "never": {}}
	found := map[string]consume.Queued{}
	if err := c.Find(t.Context(), "p", wanted, func(id string, q consume.Queued) { found[id] = q }); err != nil {
		t.Fatal(err)
	}
	if len(found) != 3 {
		t.Fatalf("found %v", found)
	}
	q := found["1198"]
	if string(q.Request.Data) != "body 1198" || q.Request.Subject != "tools.request.gpu.low.p" || q.Lane != (consume.Lane{Pool: "gpu", Priority: "low", Project: "p"}) {
		t.Errorf("%+v", q)
	}
	for range 2 { // idempotent
		if err := q.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
	found = map[string]consume.Queued{}
	if err := c.Find(t.Context(), "p", wanted, func(id string, q consume.Queued) { found[id] = q }); err != nil || len(found) != 2 {
		t.Errorf("after the removal: %v, %v", found, err)
	}
	if err := c.Find(t.Context(), "nobody", wanted, func(string, consume.Queued) { t.Error("found something") }); err != nil {
		t.Error(err)
	}
}

// A planner may leave Nats-Msg-Id out: its requests are found all the same.
func TestFindWithoutMessageID(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet("default")
	for _, body := range []string{
		`noise`,
		`{"specversion":"1.0","id":"a","source":"/s","type":"dev.toolworker.request.v1","data":{"project":"p","tool":"t"}}`,
		`{"specversion":"1.0","id":"b","source":"/s","type":"dev.toolworker.request.v1","data":{"project":"p","tool":"t"}}`,
	} {
		if _, err := c.JetStream().Publish(t.Context(), "tools.request.default.normal.p", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	if err := c.Find(t.Context(), "p", map[string]struct{}{"b": {}, "c": {}}, func(id string, q consume.Queued) {
		found = append(found, id)
		if err := q.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[0] != "b" {
		t.Errorf("found %q, want b", found)
	}
}
