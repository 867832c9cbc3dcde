package consume

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

const (
	// A cancelled request that runs somewhere is answered by who runs it,
	// within a second. Only then its place in the queue is looked for, by one
	// worker after the other.
	cancelPatience = 1200 * time.Millisecond
	cancelSpread   = 1300 * time.Millisecond
	// A look for many is a read of the queue: at most so long, then the next.
	cancelTimeout = 30 * time.Second
	cancelLooks   = 4 // at once
)

// canceller answers cancelled requests that wait in the queue, wherever they
// stand there.
type canceller struct {
	*Consumer
	wake chan struct{}

	mu  sync.Mutex
	due map[requestKey]time.Time
}

func newCanceller(c *Consumer) *canceller {
	return &canceller{Consumer: c, wake: make(chan struct{}, 1), due: map[requestKey]time.Time{}}
}

// cancelled takes news of a cancellation.
func (c *Consumer) cancelled(project, id string) {
	key := requestKey{project, id}
	if c.runs.stop(key, tool.ErrCancelled) {
		return
	}
	c.canceller.add(key, cancelPatience+rand.N(cancelSpread))
}

func (k *canceller) add(key requestKey, wait time.Duration) {
	k.mu.Lock()
	k.due[key] = time.Now().Add(wait)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run looks for what is due, until ctx ends.
func (k *canceller) run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		batches, next := k.take(time.Now())
		looks := pool.New().WithMaxGoroutines(cancelLooks)
		for project, ids := range batches {
			looks.Go(func() { k.look(ctx, project, ids) })
		}
		looks.Wait()
		if len(batches) > 0 && ctx.Err() == nil {
			continue // time has passed
		}
		timer.Reset(next)
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-timer.C:
		}
	}
}

// take returns what is due, by project, and when the next is.
func (k *canceller) take(now time.Time) (map[string]map[string]struct{}, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var batches map[string]map[string]struct{}
	next := time.Hour
	for key, due := range k.due {
		if wait := due.Sub(now); wait > 0 {
			next = min(next, wait)
			continue
		}
		delete(k.due, key)
		if batches == nil {
			batches = map[string]map[string]struct{}{}
		}
		if batches[key.project] == nil {
			batches[key.project] = map[string]struct{}{}
		}
		batches[key.project][key.id] = struct{}{}
	}
	return batches, next
}

// look answers those requests of a project that are still in the queue.
func (k *canceller) look(ctx context.Context, project string, ids map[string]struct{}) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	err := k.cfg.Finder.Find(ctx, project, ids, func(id string, q Queued) { k.answer(ctx, project, id, q) })
	if err == nil {
		return
	}
	k.cfg.Log.Warn("look for cancelled requests", "project", project, "error", err)
	for id := range ids {
		k.add(requestKey{project, id}, cancelPatience)
	}
}

// answer stores the result of one cancelled request, unless it has one, and
// takes it out of the queue.
func (k *canceller) answer(ctx context.Context, project, id string, q Queued) {
	key := requestKey{project, id}
	if k.runs.stop(key, tool.ErrCancelled) {
		return // it came here meanwhile
	}
	if yes, err := k.cfg.Answers.Answered(ctx, project, id); err != nil || yes {
		return
	}
	r, _ := event.DecodeRequest(q.Request, k.cfg.Prefix)
	if r == nil || r.ID != id {
		return
	}
	result := &tool.Result{
		RequestID: id, Project: project, PlanID: r.Plan.ID, Tool: r.Name(), Worker: k.cfg.Worker,
		Error: tool.Errorf(tool.Cancelled, "cancelled before it was started"),
	}
	ctx = trace.Extract(ctx, q.Request.Header, r.TraceParent, r.TraceState)
	m, err := k.cfg.Answers.Encode(ctx, result, r)
	if err == nil {
		m.Header[event.HeaderExecution] = []string{newReference()}
		trace.Inject(ctx, m.Header)
		_, err = k.cfg.Answers.Store(ctx, project, id, m)
	}
	if err == nil {
		err = q.Remove(ctx)
	}
	if err != nil {
		k.cfg.Log.Warn("answer cancelled request", "project", project, "id", id, "error", err)
		return
	}
	k.cfg.Log.Info("settled", "disposition", string(trace.Answered), "pool", q.Lane.Pool, "priority", string(q.Lane.Priority),
		"project", project, "id", id, "tool", r.Name(), "status", string(tool.StatusCancelled), "code", string(tool.Cancelled))
}
