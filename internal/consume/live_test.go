package consume

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestLiveEventsOfARequestThatAsksForThem(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var late func(string, int64, []byte)
		_, drain := q.serve(q.config(func(ctx context.Context, r *tool.Request) *tool.Result {
			out := LiveOutput(ctx, tool.Host)
			if out == nil {
				return done(r)
			}
			out("stdout", 0, []byte("one"))
			out("stderr", 0, []byte("two"))
			late = out
			return failed(r, tool.ExitStatus)
		}))
		r := newRequest("a")
		r.Stream, r.Retry = true, tool.Retry{MaxAttempts: 2, BackoffSeconds: 1}
		q.send(r)
		q.send(newRequest("quiet"))
		after(time.Minute)
		late("stdout", 3, []byte("nobody's"))
		var ids []string
		for _, m := range q.live {
			l, err := event.DecodeLive(m)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, l.Event.ID)
			if m.Subject != "tools.event.p.a" || l.Event.Source != "/toolworker/w" {
				t.Errorf("event %s on %s from %s", l.Event.ID, m.Subject, l.Event.Source)
			}
		}
		want := []string{
			"a.started.1", "a.output.1.0", "a.output.1.1", "a.retrying.1",
			"a.started.2", "a.output.2.0", "a.output.2.1",
		}
		if len(ids) != len(want) {
			t.Fatalf("events %v, expected %v", ids, want)
		}
		for i := range want {
			if ids[i] != want[i] {
				t.Errorf("events %v, expected %v", ids, want)
				break
			}
		}
		drain()
	})
}

func TestNobodyTakesLiveEvents(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(func(ctx context.Context, r *tool.Request) *tool.Result {
			if LiveOutput(ctx, tool.Host) != nil {
				t.Error("somebody takes the output")
			}
			return done(r)
		})
		cfg.Live = nil
		_, drain := q.serve(cfg)
		r := newRequest("a")
		r.Stream = true
		q.send(r)
		synctest.Wait()
		drain()
	})
}
