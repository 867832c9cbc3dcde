package consume_test

import (
	"context"
	"sync"
	"testing"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

// starts records in which order requests were started. While it is closed,
// what runs waits at its gate.
type starts struct {
	mu    sync.Mutex
	order []*tool.Request
	gate  chan struct{} // a token for each run that may end
}

func newStarts() *starts { return &starts{gate: make(chan struct{}, 100_000)} }

func (s *starts) run(ctx context.Context, r *tool.Request) *tool.Result {
	s.mu.Lock()
	s.order = append(s.order, r)
	s.mu.Unlock()
	select {
	case <-s.gate:
	case <-ctx.Done():
	}
	return resultOf(r, nil)
}

func (s *starts) count(which func(*tool.Request) bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.order {
		if which(r) {
			n++
		}
	}
	return n
}

func all(*tool.Request) bool { return true }

func (s *starts) finish(n int) {
	for range n {
		s.gate <- struct{}{}
	}
}

// TestOneRequestDoesNotWaitForSomebodysBacklog: a project has thousands of
// requests queued and all slots, another one asks once: it gets one of the
// next slots, whoever was there before.
func TestOneRequestDoesNotWaitForSomebodysBacklog(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	runs := newStarts()
	p.sendAll(5000, func(i int) *tool.Request { return request("a", rid(i)) })
	start(t, s, runs.run, nil)
	const slots = 4
	runs.finish(100)
	queuetest.Until(t, "the backlog is being worked off", func() bool { return runs.count(all) == 100+slots })
	p.send(request("b", "the-one"))
	isB := func(r *tool.Request) bool { return r.Project == "b" }
	// Within one run of each slot.
	for freed := 1; ; freed++ {
		runs.finish(1)
		queuetest.Until(t, "the freed slot is used", func() bool { return runs.count(all) >= 100+slots+freed })
		if runs.count(isB) == 1 {
			break
		}
		if freed >= slots {
			t.Fatalf("b waits after %d slots were freed", freed)
		}
	}
	runs.finish(10_000)
	if doc := p.result("b", "the-one"); !doc.Success {
		t.Errorf("%s", doc.Raw)
	}
}

func TestPrioritiesShareTheSlots(t *testing.T) {
	s := queuetest.Start(t)
	p := newPlanner(t, s)
	runs := newStarts()
	p.sendAll(3000, func(i int) *tool.Request {
		r := request([]string{"a", "b"}[i/3%2], rid(i))
		r.Priority = tool.Priorities[i%3]
		return r
	})
	start(t, s, runs.run, func(c *consume.Config) { c.Slots = 4 })
	const total = 1050
	runs.finish(total - 4)
	queuetest.Until(t, "enough were started", func() bool { return runs.count(all) >= total })
	runs.mu.Lock()
	shares := map[tool.Priority]int{}
	for _, r := range runs.order[:total] {
		shares[r.Priority]++
	}
	runs.mu.Unlock()
	for priority, want := range map[tool.Priority]int{tool.High: 800, tool.Normal: 200, tool.Low: 50} {
		if got := shares[priority]; got < want*9/10 || got > want*11/10 {
			t.Errorf("%s: %d of %d starts, expected about %d", priority, got, total, want)
		}
	}
	runs.finish(10_000)
	p.empty()
}

func TestPoolsAreServedByTheirWorkersOnly(t *testing.T) {
	s := queuetest.Start(t)
	p := &planner{t, s.Fleet("default", "gpu")}
	runs := newStarts()
	runs.finish(10)
	start(t, s, runs.run, func(c *consume.Config) { c.Pools = []string{"gpu"} })
	gpu := request("p", "for-gpu")
	gpu.Pool = "gpu"
	p.send(request("p", "for-default"))
	p.send(gpu)
	p.result("p", "for-gpu")
	queuetest.Until(t, "it is settled", func() bool { return p.messages("TOOL_REQUESTS") == 1 })
	if runs.count(func(r *tool.Request) bool { return r.Pool == "default" }) != 0 {
		t.Error("a worker of another pool took the request")
	}
	start(t, s, runs.run, func(c *consume.Config) { c.Pools = []string{"default", "gpu"} })
	p.result("p", "for-default")
}
