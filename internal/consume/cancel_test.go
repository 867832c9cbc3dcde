package consume

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// cancellable runs until it is cancelled, and says so.
func cancellable(ctx context.Context, r *tool.Request) *tool.Result {
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), tool.ErrCancelled) {
		return failed(r, tool.Cancelled)
	}
	res := done(r)
	res.Fault = context.Cause(ctx)
	return res
}

func TestRunningRequestIsCancelledAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(cancellable))
		q.send(newRequest("a"))
		after(time.Minute)
		began := time.Now()
		q.cancel("p", "a")
		synctest.Wait()
		if doc := q.result("a"); doc == nil || doc.Status != tool.StatusCancelled || time.Since(began) > 0 || q.waiting() != 0 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestFaultOfACancelledRunIsItsCancellation(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(func(ctx context.Context, r *tool.Request) *tool.Result {
			<-ctx.Done()
			return faulty(ctx, r)
		}))
		q.send(newRequest("a"))
		synctest.Wait()
		q.cancel("p", "a")
		synctest.Wait()
		if doc := q.result("a"); doc == nil || doc.Status != tool.StatusCancelled || len(q.naks) != 0 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestQueuedRequestIsCancelledWhereverItStands(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(cancellable))
		for i := range 100 {
			q.send(newRequest(fmt.Sprint(i)))
		}
		synctest.Wait()
		q.cancel("p", "77")
		after(5 * time.Second)
		doc := q.result("77")
		if doc == nil || doc.Status != tool.StatusCancelled || doc.Error.Code != tool.Cancelled || doc.Attempt != 0 || q.waiting() != 99 {
			t.Errorf("result %+v, %d waiting", doc, q.waiting())
		}
		for i := range 100 {
			q.cancel("p", fmt.Sprint(i))
		}
		after(5 * time.Second)
		if q.waiting() != 0 || len(q.results) != 100 {
			t.Errorf("%d waiting, %d results after all were cancelled", q.waiting(), len(q.results))
		}
		drain()
	})
}

func TestCancelledBeforeItsDelivery(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		var calls atomic.Int32
		q.cancel("p", "a")
		_, drain := q.serve(q.config(counting(&calls, succeed)))
		after(10 * time.Second) // its place in the queue was looked for in vain
		q.send(newRequest("a"))
		synctest.Wait()
		if doc := q.result("a"); doc == nil || doc.Status != tool.StatusCancelled || calls.Load() != 0 {
			t.Errorf("result %+v after %d calls", doc, calls.Load())
		}
		drain()
	})
}

func TestCancelledWhileItWaitsForARetry(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(func(_ context.Context, r *tool.Request) *tool.Result { return failed(r, tool.ExitStatus) }))
		r := newRequest("a")
		r.Retry = tool.Retry{MaxAttempts: 2, BackoffSeconds: 3600}
		q.send(r)
		synctest.Wait()
		q.cancel("p", "a")
		after(5 * time.Second)
		if doc := q.result("a"); doc == nil || doc.Status != tool.StatusCancelled || q.waiting() != 0 {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestCancelledWhileParked(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		cfg := q.config(cancellable)
		cfg.Rules = &fakeRules{tools: map[string]*tool.Definition{"slow": {Name: "slow", Concurrency: 1}}}
		_, drain := q.serve(cfg)
		for _, id := range []string{"runs", "parked"} {
			r := newRequest(id)
			r.Inline, r.Tool = nil, "slow"
			q.send(r)
			synctest.Wait()
		}
		q.cancel("p", "parked")
		synctest.Wait()
		if doc := q.result("parked"); doc == nil || doc.Status != tool.StatusCancelled || q.result("runs") != nil {
			t.Errorf("result %+v", doc)
		}
		drain()
	})
}

func TestCancelAfterTheResultChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, q *memory) {
		_, drain := q.serve(q.config(succeed))
		q.send(newRequest("a"))
		synctest.Wait()
		q.cancel("p", "a")
		q.cancel("p", "never-sent")
		after(10 * time.Second)
		if doc := q.result("a"); doc == nil || !doc.Success || len(q.results) != 1 {
			t.Errorf("result %+v, %d results", doc, len(q.results))
		}
		drain()
	})
}
