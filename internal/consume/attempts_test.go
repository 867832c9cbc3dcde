package consume

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

func faulty(_ context.Context, r *tool.Request) *tool.Result {
	res := done(r)
	res.Fault = &tool.Fault{Err: errors.New("engine unreachable")}
	return res
}

func TestFaultsGoBackLaterAndLater(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, faulty)))
		q.send(newRequest("a"))
		after(5 * time.Minute)
		if want := []time.Duration{time.Second, 4 * time.Second, 16 * time.Second, time.Minute}; !slices.Equal(q.naks, want) {
			t.Errorf("given back for %v, expected %v", q.naks, want)
		}
		doc := q.result("a")
		if calls.Load() != MaxFaults || doc == nil || doc.Status != tool.StatusFailed || doc.Error.Code != tool.Internal ||
			!strings.Contains(doc.Error.Message, "reference ") {
			t.Errorf("result %+v after %d calls", doc, calls.Load())
		}
		if len(q.dead) != 1 || q.dead[0].Code != tool.Internal || q.waiting() != 0 {
			t.Errorf("dead letters %+v, %d waiting", q.dead, q.waiting())
		}
		drain()
	})
}

func TestFaultsThatPassAreNoAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, func(ctx context.Context, r *tool.Request) *tool.Result {
			if calls.Load() < MaxFaults {
				return faulty(ctx, r)
			}
			return done(r)
		})))
		q.send(newRequest("a"))
		after(5 * time.Minute)
		if doc := q.result("a"); doc == nil || !doc.Success || doc.Attempt != 1 || len(q.dead) != 0 {
			t.Errorf("result %+v, dead letters %+v", doc, q.dead)
		}
		drain()
	})
}

func TestWorkersLost(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		q.send(newRequest("a"))
		lost := 0
		for ; lost <= MaxLost && q.result("a") == nil; lost++ {
			m := &mortal{memory: q}
			cfg := m.config(counting(&calls, untilStopped))
			cfg.DrainTimeout = -1
			_, drain := q.serve(cfg)
			after(2 * time.Second)
			m.die()
			if err := drain(); err != nil {
				t.Fatal(err)
			}
			after(memAckWait)
		}
		doc := q.result("a")
		if lost != MaxLost+1 || calls.Load() != MaxLost || doc == nil || doc.Error.Code != tool.WorkerLost || doc.Attempt != MaxLost {
			t.Errorf("result %+v after %d workers and %d starts", doc, lost, calls.Load())
		}
		if len(q.dead) != 1 || q.dead[0].Code != tool.WorkerLost || q.waiting() != 0 {
			t.Errorf("dead letters %+v, %d waiting", q.dead, q.waiting())
		}
	})
}

func TestLostWorkersCountAsAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		q.send(newRequest("a"))
		for range 2 {
			m := &mortal{memory: q}
			cfg := m.config(untilStopped)
			cfg.DrainTimeout = -1
			_, drain := q.serve(cfg)
			after(2 * time.Second)
			m.die()
			drain()
			after(memAckWait)
		}
		_, drain := q.serve(q.config(succeed))
		after(2 * time.Second)
		if doc := q.result("a"); doc == nil || !doc.Success || doc.Attempt != 3 {
			t.Errorf("result %+v, expected the third attempt's", doc)
		}
		drain()
	})
}

// untilStopped runs until it is stopped.
func untilStopped(ctx context.Context, r *tool.Request) *tool.Result {
	<-ctx.Done()
	res := done(r)
	res.Fault = context.Cause(ctx)
	return res
}

// mortal is a worker's connection to the queue. After its death nothing that
// the worker does is heard.
type mortal struct {
	*memory
	dead  atomic.Bool
	taken []*memDelivery
}

var errDead = errors.New("no connection")

func (m *mortal) config(run executorFunc) Config {
	cfg := m.memory.config(run)
	cfg.Source, cfg.Answers, cfg.Attempts, cfg.DeadLetters = m, m, m, m
	return cfg
}

func (m *mortal) die() {
	m.dead.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, d := range m.taken {
		d.lost = true
	}
}

func (m *mortal) Fetch(lane Lane, n int, wait time.Duration, deliver func(Message)) (int, error) {
	return m.memory.Fetch(lane, n, wait, func(d Message) {
		m.taken = append(m.taken, d.(*memDelivery))
		deliver(d)
	})
}

func (m *mortal) Store(ctx context.Context, project, id string, msg event.Message) (bool, error) {
	if m.dead.Load() {
		return false, errDead
	}
	return m.memory.Store(ctx, project, id, msg)
}

func (m *mortal) Save(ctx context.Context, project, id string, rec Record, rev uint64) (uint64, error) {
	if m.dead.Load() {
		return 0, errDead
	}
	return m.memory.Save(ctx, project, id, rec, rev)
}

func TestDrainsAreNotLostWorkers(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		q.send(newRequest("a"))
		for range 2 * MaxLost {
			cfg := q.config(counting(&calls, untilStopped))
			cfg.DrainTimeout = -1
			_, drain := q.serve(cfg)
			after(2 * time.Second)
			if err := drain(); err != nil {
				t.Fatal(err)
			}
		}
		if q.result("a") != nil || calls.Load() != 2*MaxLost {
			t.Errorf("result %+v after %d starts", q.result("a"), calls.Load())
		}
		_, drain := q.serve(q.config(succeed))
		after(2 * time.Second)
		if doc := q.result("a"); doc == nil || !doc.Success || doc.Attempt != 1 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestRetryPolicy(t *testing.T) {
	for _, code := range []tool.Code{tool.ExitStatus, tool.TimedOut, tool.OutOfMemory} {
		bubble(t, func(t *testing.T, q *memory) {
			var calls atomic.Int32
			_, drain := q.serve(q.config(counting(&calls, func(_ context.Context, r *tool.Request) *tool.Result { return failed(r, code) })))
			r := newRequest("a")
			r.Retry = tool.Retry{MaxAttempts: 3, BackoffSeconds: 10}
			r.Stream = true
			q.send(r)
			after(2 * time.Minute)
			if len(q.naks) != 2 || !about(q.naks[0], 10*time.Second) || !about(q.naks[1], 20*time.Second) {
				t.Errorf("%s: given back for %v", code, q.naks)
			}
			if doc := q.result("a"); doc == nil || doc.Error.Code != code || doc.Attempt != 3 || calls.Load() != 3 || len(q.dead) != 0 {
				t.Errorf("%s: result %+v after %d calls", code, doc, calls.Load())
			}
			drain()
		})
	}
}

// about reports whether d is want, a fifth more or less.
func about(d, want time.Duration) bool {
	return d >= want*8/10 && d <= want*12/10
}

func TestRetryEndsWithSuccess(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, func(_ context.Context, r *tool.Request) *tool.Result {
			if calls.Load() == 1 {
				return failed(r, tool.ExitStatus)
			}
			return done(r)
		})))
		r := newRequest("a")
		r.Retry = tool.Retry{MaxAttempts: 3, BackoffSeconds: 3600}
		q.send(r)
		after(2 * time.Hour)
		if doc := q.result("a"); doc == nil || !doc.Success || doc.Attempt != 2 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestNoRetry(t *testing.T) {
	for name, c := range map[string]struct {
		code   tool.Code
		change func(*tool.Request)
	}{
		"another code":                     {tool.InvalidOutput, nil},
		"no policy":                        {tool.ExitStatus, func(r *tool.Request) { r.Retry = tool.Retry{} }},
		"the next start would be too late": {tool.ExitStatus, func(r *tool.Request) { r.ExpiryTime = time.Now().Add(5 * time.Second) }},
		"not idempotent":                   {tool.ExitStatus, func(r *tool.Request) { r.Inline, r.Tool = nil, "once" }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *memory) {
				cfg := q.config(func(_ context.Context, r *tool.Request) *tool.Result { return failed(r, c.code) })
				cfg.Rules = &fakeRules{tools: map[string]*tool.Definition{"once": {Name: "once", NotIdempotent: true}}}
				_, drain := q.serve(cfg)
				r := newRequest("a")
				r.Retry = tool.Retry{MaxAttempts: 5, BackoffSeconds: 10}
				if c.change != nil {
					c.change(r)
				}
				q.send(r)
				synctest.Wait()
				if doc := q.result("a"); doc == nil || doc.Error.Code != c.code || doc.Attempt != 1 || q.waiting() != 0 {
					t.Errorf("result %+v", doc)
				}
				drain()
			})
		})
	}
}

// TestEarlyRedeliveryWaits: servers forget their timers in a restart.
func TestEarlyRedeliveryWaits(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, func(_ context.Context, r *tool.Request) *tool.Result { return failed(r, tool.ExitStatus) })))
		r := newRequest("a")
		r.Retry = tool.Retry{MaxAttempts: 2, BackoffSeconds: 600}
		q.send(r)
		synctest.Wait()
		q.mu.Lock()
		for _, m := range q.unsolved {
			m.timer.Stop()
			q.offer(m)
		}
		q.mu.Unlock()
		after(2 * time.Second)
		if calls.Load() != 1 || len(q.naks) != 2 || q.naks[1] > q.naks[0] || q.naks[1] < q.naks[0]-5*time.Second {
			t.Errorf("%d calls, given back for %v: expected the rest of the delay", calls.Load(), q.naks)
		}
		after(time.Hour)
		if doc := q.result("a"); doc == nil || doc.Attempt != 2 || calls.Load() != 2 {
			t.Errorf("result %+v after %d calls", doc, calls.Load())
		}
		drain()
	})
}

func TestNotIdempotentIsNeverStartedTwice(t *testing.T) {
	once := map[string]*tool.Definition{"once": {Name: "once", NotIdempotent: true}}
	for name, c := range map[string]struct {
		run  executorFunc
		code tool.Code
	}{
		"its worker vanished":  {nil, tool.WorkerLost},
		"infrastructure fault": {faulty, tool.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *memory) {
				var calls atomic.Int32
				run := c.run
				if run == nil {
					run = succeed
					q.records[requestKey{"p", "a"}], q.revisions[requestKey{"p", "a"}] = Record{Open: 1, Started: true}, 1
				}
				cfg := q.config(counting(&calls, run))
				cfg.Rules = &fakeRules{tools: once}
				_, drain := q.serve(cfg)
				r := newRequest("a")
				r.Inline, r.Tool = nil, "once"
				q.send(r)
				after(5 * time.Minute)
				want := int32(0)
				if c.run != nil {
					want = 1
				}
				if doc := q.result("a"); doc == nil || doc.Error.Code != c.code || calls.Load() != want || len(q.dead) != 1 {
					t.Errorf("result %+v after %d calls, dead letters %+v", doc, calls.Load(), q.dead)
				}
				drain()
			})
		})
	}
}

func TestNotIdempotentThatWasHeldIsStarted(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		rules := &fakeRules{paused: "once", tools: map[string]*tool.Definition{"once": {Name: "once", NotIdempotent: true}}}
		cfg := q.config(succeed)
		cfg.Rules = rules
		_, drain := q.serve(cfg)
		r := newRequest("a")
		r.Inline, r.Tool = nil, "once"
		q.send(r)
		after(time.Minute)
		if q.result("a") != nil || q.records[requestKey{"p", "a"}].Started {
			t.Fatalf("result %+v, record %+v while paused", q.result("a"), q.records)
		}
		rules.pause("")
		after(30 * time.Second)
		if doc := q.result("a"); doc == nil || !doc.Success || doc.Attempt != 1 || !q.records[requestKey{"p", "a"}].Started {
			t.Errorf("result %+v, record %+v", doc, q.records)
		}
		drain()
	})
}

func TestBackoff(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		attempt int
		chance  float64
		want    time.Duration
	}{
		{2, 1, 0.5, 2 * time.Second},
		{2, 3, 0.5, 8 * time.Second},
		{2, 1, 0, 1600 * time.Millisecond},
		{2, 1, 1, 2400 * time.Millisecond},
		{0, 9, 1, 0},
		{2, 1000, 0.5, time.Hour},
		{1e9, 1, 1, time.Hour},
		{1e9, 1, 0, 48 * time.Minute},
	} {
		if got := backoff(c.seconds, c.attempt, c.chance); (got - c.want).Abs() > time.Microsecond {
			t.Errorf("backoff of %g s after attempt %d, chance %g: %s, expected %s", c.seconds, c.attempt, c.chance, got, c.want)
		}
	}
}
