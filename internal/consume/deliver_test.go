package consume

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// counting is an executor that counts its calls.
func counting(calls *atomic.Int32, run executorFunc) executorFunc {
	return func(ctx context.Context, r *tool.Request) *tool.Result {
		calls.Add(1)
		return run(ctx, r)
	}
}

func succeed(_ context.Context, r *tool.Request) *tool.Result { return done(r) }

func TestSuccessIsStoredAndAcknowledged(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(succeed))
		q.send(newRequest("a"))
		synctest.Wait()
		doc := q.result("a")
		if doc == nil || !doc.Success || doc.Attempt != 1 || doc.Worker != "w" || q.waiting() != 0 || len(q.records) != 0 {
			t.Errorf("result %+v, %d waiting, records %v", doc, q.waiting(), q.records)
		}
		if m := q.results[requestKey{"p", "a"}]; m.Get(event.HeaderExecution) == "" {
			t.Errorf("headers %v: expected %s", m.Header, event.HeaderExecution)
		}
		if err := drain(); err != nil {
			t.Error(err)
		}
	})
}

func TestUnreadableBecomesADeadLetter(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		cfg := q.config(counting(&calls, succeed))
		cfg.Slots = 1
		_, drain := q.serve(cfg)
		lane := Lane{tool.DefaultPool, tool.Normal, "p"}
		noise := event.Message{Subject: "tools.request.default.normal.p", Data: []byte("{noise")}
		q.publish(lane, noise)
		q.publish(lane, event.Message{
			Subject: noise.Subject,
			Header:  map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"known"}, "ce-type": {"dev.toolworker.request.v1"}, "ce-source": {"/x"}},
			Data:    []byte("{noise"),
		})
		synctest.Wait()
		if q.waiting() != 0 || calls.Load() != 0 {
			t.Errorf("%d waiting, %d calls", q.waiting(), calls.Load())
		}
		if len(q.dead) == 0 || q.dead[0].Code != tool.InvalidRequest || q.dead[0].Lane != lane || q.dead[0].Deliveries != 1 ||
			q.dead[0].Sequence != 1 || string(q.dead[0].Request.Data) != "{noise" || q.dead[0].Reason == "" {
			t.Errorf("dead letters %+v", q.dead)
		}
		if doc := q.result("known"); doc == nil || doc.Status != tool.StatusRejected || doc.Error.Code != tool.InvalidRequest {
			t.Errorf("result of the one whose id can be read: %+v", doc)
		}
		drain()
	})
}

func TestInvalidRequestGetsOnlyItsResult(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, succeed)))
		m, _ := event.EncodeRequest(newRequest("a"), "tools")
		m.Data = []byte(strings.Replace(string(m.Data), `"input"`, `"inptu"`, 1))
		q.publish(Lane{tool.DefaultPool, tool.Normal, "p"}, m)
		synctest.Wait()
		doc := q.result("a")
		if doc == nil || doc.Status != tool.StatusRejected || !strings.Contains(doc.Error.Message, "/data/inptu") || doc.Attempt != 0 {
			t.Errorf("result %+v", doc)
		}
		if len(q.dead) != 0 || q.waiting() != 0 || calls.Load() != 0 {
			t.Errorf("%d dead letters, %d waiting, %d calls", len(q.dead), q.waiting(), calls.Load())
		}
		drain()
	})
}

func TestMissingInputIsRejected(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(succeed))
		r := newRequest("a")
		m, err := event.EncodeReferenced(r, "tools", "tool_inputs_p", "a", strings.Repeat("0", 64))
		if err != nil {
			t.Fatal(err)
		}
		q.publish(Lane{r.Pool, r.Priority, r.Project}, m)
		synctest.Wait()
		if doc := q.result("a"); doc == nil || doc.Error.Code != tool.InvalidRequest || q.waiting() != 0 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestExpiredIsNotStarted(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, succeed)))
		r := newRequest("a")
		r.ExpiryTime = time.Now()
		q.send(r)
		synctest.Wait()
		if doc := q.result("a"); doc == nil || doc.Status != tool.StatusExpired || doc.Error.Code != tool.Expired || calls.Load() != 0 {
			t.Errorf("result %+v after %d calls", doc, calls.Load())
		}
		drain()
	})
}

func TestAnsweredRedeliveryIsNotRunAgain(t *testing.T) {
	for name, change := range map[string]func(*tool.Request){
		"without time":                 func(r *tool.Request) { r.Time = time.Time{} },
		"stored much later":            func(r *tool.Request) { r.Time = time.Now().Add(-10 * time.Minute) },
		"its acknowledgement was lost": nil,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, q *memory) {
				var calls atomic.Int32
				q.gone = change == nil
				_, drain := q.serve(q.config(counting(&calls, succeed)))
				r := newRequest("a")
				if change != nil {
					change(r)
					q.results[requestKey{"p", "a"}] = event.Message{}
				}
				q.send(r)
				synctest.Wait()
				q.mu.Lock()
				q.gone = false
				q.mu.Unlock()
				after(memAckWait + 2*time.Second)
				want := int32(0)
				if change == nil {
					want = 1
				}
				if calls.Load() != want || q.waiting() != 0 || len(q.results) != 1 {
					t.Errorf("%d calls, expected %d; %d waiting", calls.Load(), want, q.waiting())
				}
				drain()
			})
		})
	}
}

func TestFirstDeliveryCostsNoLookUp(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, succeed)))
		q.results[requestKey{"p", "a"}] = event.Message{} // as if somebody had been first
		q.send(newRequest("a"))
		synctest.Wait()
		if calls.Load() != 1 || q.waiting() != 0 {
			t.Errorf("%d calls, %d waiting: expected a run whose result comes second", calls.Load(), q.waiting())
		}
		drain()
	})
}

func TestPanicIsOneRequestsInternalError(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(func(_ context.Context, r *tool.Request) *tool.Result {
			if r.ID == "bad" {
				panic("boom")
			}
			return done(r)
		}))
		q.send(newRequest("bad"))
		q.send(newRequest("good"))
		synctest.Wait()
		doc := q.result("bad")
		if doc == nil || doc.Status != tool.StatusFailed || doc.Error.Code != tool.Internal || !strings.Contains(doc.Error.Message, "reference ") ||
			strings.Contains(doc.Error.Message, "boom") {
			t.Errorf("result of the panic: %+v", doc)
		}
		if doc := q.result("good"); doc == nil || !doc.Success || q.waiting() != 0 {
			t.Errorf("result of the other: %+v", doc)
		}
		drain()
	})
}

func TestPanicOfASnapshotOfRulesIsOneRequestsToo(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(succeed)
		cfg.Rules = panickyRules{&fakeRules{}}
		_, drain := q.serve(cfg)
		r := newRequest("a")
		r.Inline, r.Tool = nil, "some"
		q.send(r)
		q.send(newRequest("b"))
		synctest.Wait()
		if a, b := q.result("a"), q.result("b"); a == nil || a.Error.Code != tool.Internal || b == nil || !b.Success {
			t.Errorf("results %+v, %+v", a, b)
		}
		drain()
	})
}

type panickyRules struct{ *fakeRules }

func (panickyRules) Tool(context.Context, string) (*tool.Definition, bool) { panic("no catalogue") }

func TestHeartbeatsKeepALongRunAlive(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		_, drain := q.serve(q.config(counting(&calls, func(_ context.Context, r *tool.Request) *tool.Result {
			time.Sleep(10 * time.Minute)
			return done(r)
		})))
		q.send(newRequest("a"))
		after(11 * time.Minute)
		if doc := q.result("a"); doc == nil || calls.Load() != 1 || q.beats < 55 || q.beats > 65 {
			t.Errorf("%d calls, %d heartbeats", calls.Load(), q.beats)
		}
		drain()
	})
}

func TestRedeliveryOfWhatIsInHandIsLeftAlone(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		cfg := q.config(counting(&calls, func(_ context.Context, r *tool.Request) *tool.Result {
			time.Sleep(5 * time.Minute)
			return done(r)
		}))
		cfg.Heartbeat = time.Hour // the server hears nothing
		_, drain := q.serve(cfg)
		q.send(newRequest("a"))
		after(6 * time.Minute)
		if doc := q.result("a"); doc == nil || doc.Attempt != 1 || calls.Load() != 1 || q.waiting() != 0 {
			t.Errorf("result %+v after %d calls, %d waiting", doc, calls.Load(), q.waiting())
		}
		drain()
	})
}

func TestResultThatCannotBeStoredIsReplaced(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		q.storeErr = errors.New("message is too large")
		_, drain := q.serve(q.config(succeed))
		q.send(newRequest("a"))
		synctest.Wait()
		doc := q.result("a")
		if doc == nil || doc.Error == nil || doc.Error.Code != tool.Internal || !strings.Contains(doc.Error.Message, "too large") || doc.Attempt != 1 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestEncodingIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		q.failing = 3
		_, drain := q.serve(q.config(succeed))
		q.send(newRequest("a"))
		after(10 * time.Second)
		if doc := q.result("a"); doc == nil || !doc.Success {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}
