package consume

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// early is how much sooner than noted a start may be: clocks differ.
	early = 250 * time.Millisecond
	// firstPark bounds how long a request waits for its tool here at first,
	// while another worker may have a place for it.
	firstPark, lastPark = 2 * time.Second, 15 * time.Second
	// A request that cannot wait here goes back for a growing time.
	firstHold, lastHold = 250 * time.Millisecond, 15 * time.Second
)

// mayStart reads the book of a request that was delivered before; false when
// the delivery is settled.
func (d *delivery) mayStart(ctx context.Context) bool {
	if d.request.Tool != "" {
		if definition, known := d.cfg.Rules.Tool(ctx, d.request.Tool); known {
			d.once, d.bound = definition.NotIdempotent, definition.Concurrency
		}
	}
	if d.info.first() {
		return true
	}
	if err := d.ledger.load(ctx, d.info); err != nil {
		d.outcome.why = err.Error()
		return false
	}
	if err := d.ledger.verdict(d.once); err != nil {
		d.lost(ctx, err)
		return false
	}
	if wait := time.Until(d.ledger.rec.NotBefore); wait > early {
		d.handBack(ctx, wait, nil)
		return false
	}
	return true
}

// lost answers a request whose workers were lost, and puts it aside.
func (d *delivery) lost(ctx context.Context, why error) {
	e := tool.Errorf(tool.WorkerLost, "%d workers were lost while running it", d.ledger.rec.Open)
	if errors.Is(why, errStartedBefore) {
		e = tool.Errorf(tool.WorkerLost, "a worker was lost while running it, and it is not idempotent")
	}
	result := d.failure(e)
	result.Attempt = d.ledger.rec.Failed + d.ledger.rec.Open
	d.answerAside(ctx, result)
}

// enter passes what holds requests back: switches and the bound of the tool.
// The delivery has its slot afterwards; false when it is settled.
func (d *delivery) enter(ctx, run context.Context) (leave func(), ok bool) {
	r := d.request
	if d.cfg.Rules.Paused(r.Pool, r.Project, r.Tool) {
		d.hold(ctx)
		return nil, false
	}
	if d.bound <= 0 {
		return func() {}, true
	}
	wait, ok := d.bounds.enter(r.Tool, d.bound, len(d.event.Data))
	if !ok {
		if wait == nil {
			d.hold(ctx)
			return nil, false
		}
		if !d.park(ctx, run, wait) {
			return nil, false
		}
	}
	return func() { d.bounds.leave(r.Tool) }, true
}

// hold gives a request back that has to wait for its tool, for longer every
// time.
func (d *delivery) hold(ctx context.Context) {
	d.handBack(ctx, holdDelay(d.ledger.rec.Held), func(rec *Record) { rec.Held++ })
}

// park waits for the tool without a slot, so that others can run meanwhile,
// and then for a slot; false when the delivery is settled.
func (d *delivery) park(ctx, run context.Context, wait *place) bool {
	name := d.request.Tool
	d.slot = false
	d.release(d.lane)
	timer := time.NewTimer(min(firstPark<<min(d.ledger.rec.Held, 10), lastPark))
	defer timer.Stop()
	select {
	case <-wait.granted:
		if d.regainSlot(run) {
			return true
		}
		d.bounds.leave(name)
		d.unpark(ctx, run)
		return false
	case <-timer.C:
	case <-d.draining:
	case <-run.Done():
	}
	if !d.bounds.withdraw(name, wait) {
		d.bounds.leave(name)
	}
	d.unpark(ctx, run)
	return false
}

// unpark settles a request that waited in vain.
func (d *delivery) unpark(ctx, run context.Context) {
	switch {
	case errors.Is(context.Cause(run), tool.ErrCancelled):
		d.answer(ctx, d.cancelledResult())
	case d.Draining():
		d.handBack(ctx, 0, nil)
	default:
		d.hold(ctx)
	}
}

// regainSlot waits for the lane's turn.
func (d *delivery) regainSlot(run context.Context) bool {
	t := &ticket{lane: d.lane, granted: make(chan struct{})}
	d.mu.Lock()
	d.sched.wait(t)
	d.grant()
	d.mu.Unlock()
	select {
	case <-t.granted:
		d.slot = true
		return true
	case <-d.draining:
	case <-run.Done():
	}
	d.mu.Lock()
	waiting := d.sched.withdraw(t)
	d.mu.Unlock()
	d.slot = !waiting
	return d.slot && !d.Draining() && run.Err() == nil
}

// holdDelay is jittered, so that what was held together does not come back
// together.
func holdDelay(held int) time.Duration {
	d := min(firstHold<<min(held, 10), lastHold)
	return d*3/4 + rand.N(d/2)
}
