package consume

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestDrainLetsRunningToolsFinish(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(newGauge().run(20 * time.Second)))
		for i := range 10 {
			q.send(newRequest(fmt.Sprint(i)))
		}
		synctest.Wait()
		began := time.Now()
		if err := drain(); err != nil {
			t.Error(err)
		}
		if got := time.Since(began); got != 20*time.Second {
			t.Errorf("drained in %s, expected the rest of the running tools", got)
		}
		if len(q.results) != 2 || q.waiting() != 8 || len(q.naks) != 0 {
			t.Errorf("%d results, %d waiting, %d given back", len(q.results), q.waiting(), len(q.naks))
		}
	})
}

func TestDrainStopsWhatRunsTooLong(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(untilStopped)
		cfg.DrainTimeout = 5 * time.Second
		_, drain := q.serve(cfg)
		for i := range 10 {
			q.send(newRequest(fmt.Sprint(i)))
		}
		synctest.Wait()
		began := time.Now()
		if err := drain(); err != nil {
			t.Error(err)
		}
		if got := time.Since(began); got != 5*time.Second {
			t.Errorf("drained in %s, expected the drain timeout", got)
		}
		if len(q.results) != 0 || q.waiting() != 10 || len(q.naks) != 2 || q.naks[0] != 0 {
			t.Errorf("%d results, %d waiting, given back for %v", len(q.results), q.waiting(), q.naks)
		}
	})
}

func TestSecondSignalShortensTheDrain(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		c, err := New(q.config(untilStopped))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		hurry, again := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx, hurry) }()
		synctest.Wait()
		q.send(newRequest("a"))
		synctest.Wait()
		stop()
		after(time.Second)
		if !c.Draining() || c.Running() != 1 {
			t.Errorf("draining %v with %d in hand", c.Draining(), c.Running())
		}
		began := time.Now()
		again()
		if err := <-ended; err != nil || time.Since(began) != 0 {
			t.Errorf("ended after %s: %v", time.Since(began), err)
		}
		if q.waiting() != 1 || len(q.naks) != 1 {
			t.Errorf("%d waiting, %d given back", q.waiting(), len(q.naks))
		}
	})
}

func TestToolThatFinishesWhenItIsStoppedIsAnswered(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(func(ctx context.Context, r *tool.Request) *tool.Result {
			<-ctx.Done()
			return done(r)
		})
		cfg.DrainTimeout = -1
		_, drain := q.serve(cfg)
		q.send(newRequest("a"))
		synctest.Wait()
		drain()
		if doc := q.result("a"); doc == nil || !doc.Success || q.waiting() != 0 {
			t.Errorf("result %+v", doc)
		}
	})
}

func TestNotIdempotentToolStoppedByADrain(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(untilStopped)
		cfg.DrainTimeout = -1
		cfg.Rules = &fakeRules{tools: map[string]*tool.Definition{"once": {Name: "once", NotIdempotent: true}}}
		_, drain := q.serve(cfg)
		r := newRequest("a")
		r.Inline, r.Tool = nil, "once"
		q.send(r)
		synctest.Wait()
		drain()
		if doc := q.result("a"); doc == nil || doc.Error.Code != tool.WorkerLost || q.waiting() != 0 {
			t.Errorf("result %+v", doc)
		}
	})
}

func TestExecutionThatIgnoresItsEndIsAbandoned(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		release := make(chan struct{})
		cfg := q.config(func(_ context.Context, r *tool.Request) *tool.Result {
			<-release
			return done(r)
		})
		_, drain := q.serve(cfg)
		q.send(newRequest("a"))
		synctest.Wait()
		err := drain()
		if err == nil || !strings.Contains(err.Error(), "did not end") {
			t.Errorf("drain: %v", err)
		}
		close(release)
		synctest.Wait()
	})
}

func TestWhatArrivesDuringTheDrainGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		late := &lateSource{memory: q, asked: make(chan struct{}), answer: make(chan struct{})}
		cfg := q.config(succeed)
		cfg.Source = late
		c, drain := q.serve(cfg)
		q.send(newRequest("a"))
		<-late.asked
		go drain()
		synctest.Wait()
		if !c.Draining() {
			t.Fatal("not draining")
		}
		close(late.answer) // the messages were on their way
		synctest.Wait()
		if len(q.naks) != 1 || q.naks[0] != 0 || len(q.results) != 0 || q.waiting() != 1 {
			t.Errorf("given back for %v, %d results", q.naks, len(q.results))
		}
		if rec := q.records[requestKey{"p", "a"}]; rec.Open != 0 || q.revisions[requestKey{"p", "a"}] == 0 {
			t.Errorf("record %+v: the next worker would count a lost one", rec)
		}
		after(time.Second)
	})
}

// lateSource answers its first fetch when it is told to.
type lateSource struct {
	*memory
	asked, answer chan struct{}
}

func (s *lateSource) Fetch(lane Lane, n int, wait time.Duration, deliver func(Message)) (int, error) {
	select {
	case <-s.answer:
	default:
		close(s.asked)
		<-s.answer
	}
	return s.memory.Fetch(lane, n, wait, deliver)
}
