package consume

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestPausedRequestsWaitInTheQueue(t *testing.T) {
	for _, what := range []string{tool.DefaultPool, "p", "some"} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *memory) {
				rules := &fakeRules{paused: what, tools: map[string]*tool.Definition{"some": {Name: "some"}}}
				cfg := q.config(succeed)
				cfg.Rules = rules
				_, drain := q.serve(cfg)
				for i := range 10 {
					r := newRequest(fmt.Sprint(i))
					r.Inline, r.Tool = nil, "some"
					q.send(r)
				}
				after(10 * time.Minute)
				if n := q.waiting(); n != 10 || len(q.results) != 0 {
					t.Errorf("%d waiting, %d results while paused", n, len(q.results))
				}
				if what != "some" && len(q.naks) > 0 {
					t.Errorf("%d messages were taken out of a paused lane", len(q.naks))
				}
				if limit := 10 * 10 * 60 / 11; len(q.naks) > limit+100 {
					t.Errorf("%d give-backs in ten minutes: busy looping", len(q.naks))
				}
				rules.pause("")
				after(20 * time.Second)
				if q.waiting() != 0 {
					t.Errorf("%d waiting after resume", q.waiting())
				}
				for i := range 10 {
					if doc := q.result(fmt.Sprint(i)); doc == nil || !doc.Success || doc.Attempt != 1 {
						t.Errorf("result %+v: holding back must not count as an attempt", doc)
					}
				}
				drain()
			})
		})
	}
}

func TestPausedToolDoesNotHoldOthersBack(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(succeed)
		cfg.Rules = &fakeRules{paused: "some"}
		_, drain := q.serve(cfg)
		for i := range 100 {
			r := newRequest(fmt.Sprint(i))
			r.Inline, r.Tool = nil, "some"
			q.send(r)
		}
		q.send(newRequest("other"))
		after(time.Second)
		if doc := q.result("other"); doc == nil || !doc.Success {
			t.Error("a request of the same lane waits behind those of a paused tool")
		}
		drain()
	})
}

// gauge watches how much runs at once.
type gauge struct {
	mu           sync.Mutex
	running, max map[string]int
}

func newGauge() *gauge { return &gauge{running: map[string]int{}, max: map[string]int{}} }

func (g *gauge) run(d time.Duration) executorFunc {
	return func(_ context.Context, r *tool.Request) *tool.Result {
		g.mu.Lock()
		for _, k := range []string{"all", "tool " + r.Name(), "project " + r.Project} {
			g.running[k]++
			g.max[k] = max(g.max[k], g.running[k])
		}
		g.mu.Unlock()
		time.Sleep(d)
		g.mu.Lock()
		for _, k := range []string{"all", "tool " + r.Name(), "project " + r.Project} {
			g.running[k]--
		}
		g.mu.Unlock()
		return done(r)
	}
}

func TestToolBoundKeepsTheToolBusyAndOthersGoing(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		g := newGauge()
		cfg := q.config(g.run(time.Second))
		cfg.Slots = 8
		cfg.Rules = &fakeRules{tools: map[string]*tool.Definition{"slow": {Name: "slow", Concurrency: 2}}}
		_, drain := q.serve(cfg)
		for i := range 200 {
			r := newRequest(fmt.Sprint("slow-", i))
			r.Inline, r.Tool = nil, "slow"
			q.send(r)
		}
		for i := range 20 {
			q.send(newRequest(fmt.Sprint("fast-", i)))
		}
		after(6 * time.Second)
		for i := range 20 {
			if q.result(fmt.Sprint("fast-", i)) == nil {
				t.Fatalf("fast-%d waits behind a tool at its bound", i)
			}
		}
		// 200 runs of a second, two at once: a little more than 100 s.
		after(110 * time.Second)
		if g.max["tool slow"] != 2 || g.max["all"] > 8 {
			t.Errorf("at once: %v", g.max)
		}
		if n := q.waiting(); n > 10 {
			t.Errorf("%d of 200 wait still: the tool is not kept busy", n)
		}
		after(30 * time.Second)
		if q.waiting() != 0 || len(q.naks) > 200*12 {
			t.Errorf("%d waiting, %d give-backs", q.waiting(), len(q.naks))
		}
		for i := range 200 {
			if doc := q.result(fmt.Sprint("slow-", i)); doc == nil || doc.Attempt != 1 {
				t.Errorf("slow-%d: %+v", i, doc)
			}
		}
		drain()
	})
}

func TestParkedRequestsGoToAnotherWorker(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		rules := &fakeRules{tools: map[string]*tool.Definition{"slow": {Name: "slow", Concurrency: 1}}}
		g := newGauge()
		worker := func() func() error {
			cfg := q.config(g.run(time.Hour))
			cfg.Rules = rules
			_, drain := q.serve(cfg)
			return drain
		}
		first := worker()
		for i := range 3 {
			r := newRequest(fmt.Sprint(i))
			r.Inline, r.Tool = nil, "slow"
			q.send(r)
		}
		after(time.Second)
		second := worker()
		after(10 * time.Minute)
		if g.max["tool slow"] != 2 {
			t.Errorf("%d run at once, expected one on each worker", g.max["tool slow"])
		}
		after(3 * time.Hour)
		if q.waiting() != 0 {
			t.Errorf("%d waiting", q.waiting())
		}
		first()
		second()
	})
}

func TestProjectBound(t *testing.T) {
	for _, c := range []struct{ own, all, want int }{{2, 0, 2}, {0, 3, 3}, {2, 3, 2}, {3, 2, 2}, {0, 0, 6}} {
		bubble(t, func(t *testing.T, q *memory) {
			g := newGauge()
			cfg := q.config(g.run(time.Second))
			cfg.Slots, cfg.ProjectSlots, cfg.Rules = 6, c.all, &fakeRules{bound: c.own}
			_, drain := q.serve(cfg)
			for i := range 30 {
				r := newRequest(fmt.Sprint(i))
				r.Priority = tool.Priorities[i%3]
				q.send(r)
			}
			after(time.Minute)
			if q.waiting() != 0 || g.max["project p"] != c.want {
				t.Errorf("own bound %d, everybody's %d: %d at once, expected %d; %d waiting", c.own, c.all, g.max["project p"], c.want, q.waiting())
			}
			drain()
		})
	}
}

func TestDrainGivesParkedRequestsBackAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		cfg := q.config(counting(&calls, newGauge().run(20*time.Second)))
		cfg.Rules = &fakeRules{tools: map[string]*tool.Definition{"slow": {Name: "slow", Concurrency: 1}}}
		c, drain := q.serve(cfg)
		for i := range 4 {
			r := newRequest(fmt.Sprint(i))
			r.Inline, r.Tool = nil, "slow"
			q.send(r)
		}
		synctest.Wait()
		began := time.Now()
		go drain()
		synctest.Wait()
		// A last look that is on its way may get one of them again.
		if len(q.naks) < 3 || len(q.naks) > 4 || c.Running() != 1 || time.Since(began) != 0 {
			t.Errorf("%d given back, %d in hand", len(q.naks), c.Running())
		}
		after(time.Minute)
		if len(q.results) != 1 || calls.Load() != 1 {
			t.Errorf("%d results", len(q.results))
		}
		for k, rec := range q.records {
			if rec.Open != 0 {
				t.Errorf("%v: record %+v, expected no open start", k, rec)
			}
		}
	})
}
