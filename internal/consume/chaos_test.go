package consume_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

// onePerRequest checks that each of n requests of a project has one result
// and that nothing is left in the queue.
func (p *planner) onePerRequest(project string, n int) {
	p.t.Helper()
	p.empty()
	if got := p.messages("TOOL_RESULTS"); got != uint64(n) {
		p.t.Errorf("%d results of %d requests", got, n)
	}
	for i := range n {
		if doc := p.result(project, rid(i)); !doc.Success {
			p.t.Errorf("%s: %s", rid(i), doc.Raw)
		}
	}
}

// TestServerRestartsDuringTheLoad: what was stored, acknowledged, published or
// on its way at that moment is neither lost nor answered twice.
func TestServerRestartsDuringTheLoad(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	var runs atomic.Int32
	run := func(ctx context.Context, r *tool.Request) *tool.Result {
		runs.Add(1)
		return succeed(ctx, r)
	}
	for range 2 {
		start(t, s, run, func(c *consume.Config) { c.Slots = 8 })
	}
	const n = 1500
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for i := range n {
			p.send(request("p", rid(i)))
		}
	}()
	for _, after := range []int32{n / 10, n / 3, n / 2} {
		queuetest.Until(t, "some were run", func() bool { return runs.Load() >= after })
		s.Restart()
	}
	<-sent
	p.onePerRequest("p", n)
}

// TestWorkerIsKilledDuringTheLoad: its connection is cut and it never says
// another word; the others answer what it had in hand.
func TestWorkerIsKilledDuringTheLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the ack wait of 30 s")
	}
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	stuck := make(chan struct{})
	var taken atomic.Int32
	victim := start(t, s, func(ctx context.Context, r *tool.Request) *tool.Result {
		taken.Add(1)
		<-stuck
		return resultOf(r, nil)
	}, func(c *consume.Config) { c.Slots, c.DrainTimeout = 8, -1 })
	const n = 200
	p.sendAll(n, func(i int) *tool.Request { return request("p", rid(i)) })
	queuetest.Until(t, "the victim is busy", func() bool { return taken.Load() == 8 })
	victim.client.Conn().Close()
	start(t, s, succeed, func(c *consume.Config) { c.Slots = 8 })
	p.empty2(45 * time.Second)
	for i := range n {
		doc := p.result("p", rid(i))
		if !doc.Success || doc.Attempt > 2 {
			t.Errorf("%s", doc.Raw)
		}
	}
	if got := p.messages("TOOL_RESULTS"); got != n {
		t.Errorf("%d results of %d requests", got, n)
	}
	close(stuck)
}

// empty2 is empty with a deadline of its own.
func (p *planner) empty2(d time.Duration) {
	p.t.Helper()
	for deadline := time.Now().Add(d); p.messages("TOOL_REQUESTS") > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("%d requests are not settled", p.messages("TOOL_REQUESTS"))
		}
	}
}

func TestConsumersAreDeletedUnderTheWorkers(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	var runs atomic.Int32
	for range 2 {
		start(t, s, func(ctx context.Context, r *tool.Request) *tool.Result {
			runs.Add(1)
			return succeed(ctx, r)
		}, func(c *consume.Config) { c.Slots = 8 })
	}
	const n = 1000
	p.sendAll(n, func(i int) *tool.Request { return request("p", rid(i)) })
	for range 5 {
		seen := runs.Load()
		queuetest.Until(t, "some were run", func() bool { return runs.Load() > seen || runs.Load() >= n })
		_ = p.JetStream().DeleteConsumer(t.Context(), "TOOL_REQUESTS", "default-normal-p")
	}
	// A delivery that was under way when its consumer went comes again after
	// the ack wait of 30 s, and may meet the next deletion.
	p.empty2(3 * time.Minute)
	p.onePerRequest("p", n)
}

func TestStreamIsDeletedAndMadeAgain(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	start(t, s, succeed, nil)
	p.send(request("p", rid(0)))
	p.result("p", rid(0))
	if err := p.JetStream().DeleteStream(t.Context(), "TOOL_REQUESTS"); err != nil {
		t.Fatal(err)
	}
	queuetest.Until(t, "a worker made it again", func() bool {
		_, err := p.JetStream().Stream(t.Context(), "TOOL_REQUESTS")
		return err == nil
	})
	for i := 1; i < 20; i++ {
		p.send(request("p", rid(i)))
	}
	p.onePerRequest("p", 20)
}

func TestRollingDrainsLoseNothing(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	var mu sync.Mutex
	attempts := map[string]int{}
	run := func(ctx context.Context, r *tool.Request) *tool.Result {
		mu.Lock()
		attempts[r.ID]++
		slow := len(attempts)%7 == 0 && attempts[r.ID] == 1
		mu.Unlock()
		if slow {
			<-ctx.Done()
			res := resultOf(r, nil)
			res.Fault = context.Cause(ctx)
			return res
		}
		return succeed(ctx, r)
	}
	const n = 600
	p.sendAll(n, func(i int) *tool.Request { return request(fmt.Sprint("p", i%3), rid(i)) })
	for range 6 {
		w := start(t, s, run, func(c *consume.Config) { c.Slots, c.DrainTimeout = 8, -1 })
		mu.Lock()
		before := len(attempts)
		mu.Unlock()
		queuetest.Until(t, "some were started", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(attempts) > before+20 || len(attempts) == n
		})
		w.drain(t)
	}
	start(t, s, succeed, func(c *consume.Config) { c.Slots = 8 })
	p.empty()
	for i := range n {
		if doc := p.result(fmt.Sprint("p", i%3), rid(i)); !doc.Success || doc.Attempt != 1 {
			t.Errorf("%s: a drain is no attempt", doc.Raw)
		}
	}
}

func TestWorkerThatStartsBeforeItsStreamsWork(t *testing.T) {
	s := queuetest.Start(t)
	start(t, s, succeed, nil)
	p := newPlanner(t, s)
	s.Stop()
	queuetest.Until(t, "the connection is lost", func() bool { return !p.Connected() })
	go s.Start()
	p.send(request("p", "a"))
	if doc := p.result("p", "a"); !doc.Success {
		t.Errorf("%s", doc.Raw)
	}
}
