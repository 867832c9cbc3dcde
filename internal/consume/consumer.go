package consume

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// look is how long the message of a wake-up is waited for.
	look = 50 * time.Millisecond
	// stopGrace is how long an execution may take to end when it is stopped,
	// and its message to go back; hurriedGrace when somebody is in a hurry.
	stopGrace    = 15 * time.Second
	hurriedGrace = 3 * time.Second
	// settleGrace is for what notices that nothing is tried any more.
	settleGrace = time.Second
)

// Consumer serves requests until it is told to stop.
type Consumer struct {
	cfg        Config
	heartbeats *heartbeats
	runs       *runs
	bounds     *bounds
	canceller  *canceller

	mu    sync.Mutex
	sched *scheduler

	draining chan struct{} // closed when fetching ends
	work     conc.WaitGroup
	pending  atomic.Int64 // deliveries between receipt and settlement

	settling context.Context // ends what is still tried after everything was stopped
}

// New makes a Consumer.
func New(cfg Config) (*Consumer, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Consumer{
		cfg: cfg, heartbeats: newHeartbeats(cfg.Heartbeat), runs: newRuns(), bounds: newBounds(),
		draining: make(chan struct{}),
	}
	c.sched = newScheduler(cfg.Slots, c.projectBound, func(l Lane) bool { return cfg.Rules.Paused(l.Pool, l.Project, "") })
	c.canceller = newCanceller(c)
	return c, nil
}

// Running is how many requests this worker has in hand.
func (c *Consumer) Running() int { return int(c.pending.Load()) }

// Slots is how many requests may run at once.
func (c *Consumer) Slots() int { return c.cfg.Slots }

// Draining reports whether no more requests are taken.
func (c *Consumer) Draining() bool {
	select {
	case <-c.draining:
		return true
	default:
		return false
	}
}

// Run serves until ctx ends and then drains: no new messages, running tools
// get the drain timeout, then they are stopped and their messages given back.
// The end of hurry shortens that to nothing; nil never does. Run can be
// called once. Its error says that something could not be settled: those
// messages are delivered again.
func (c *Consumer) Run(ctx, hurry context.Context) error {
	if hurry == nil {
		hurry = context.Background()
	}
	base := context.WithoutCancel(ctx)
	settling, stopSettling := context.WithCancel(base)
	defer stopSettling()
	c.settling = settling
	c.cfg.Metrics.Slots(ctx, c.cfg.Slots)

	background, stopBackground := context.WithCancel(base)
	var loops, watch conc.WaitGroup
	loops.Go(func() { c.heartbeats.run(background) })
	loops.Go(func() { c.canceller.run(background) })
	loops.Go(func() {
		if err := c.cfg.Cancellations.Run(background, c.cancelled); err != nil {
			c.cfg.Log.Error("cancellations are not heard any more", "error", err)
		}
	})
	watch.Go(func() { c.cfg.Source.Watch(ctx, c.cfg.Pools, c.mark) })

	<-ctx.Done()
	c.stopFetching()
	watch.Wait()
	err := c.drain(hurry, stopSettling)
	stopBackground()
	loops.Wait()
	return err
}

// stopFetching ends all grants. Running fetches end by themselves: cancelling
// one would orphan what is on its way.
func (c *Consumer) stopFetching() {
	c.mu.Lock()
	c.sched.stop()
	c.mu.Unlock()
	close(c.draining)
	c.cfg.Log.Info("draining", "running", c.Running(), "timeout", c.cfg.DrainTimeout)
}

func (c *Consumer) drain(hurry context.Context, stopSettling func()) error {
	settled := make(chan struct{})
	go func() {
		c.work.Wait()
		close(settled)
	}()
	within := func(d time.Duration, hurry <-chan struct{}) bool {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-settled:
			return true
		case <-hurry:
		case <-timer.C:
		}
		return false
	}
	if within(c.cfg.DrainTimeout, hurry.Done()) {
		return nil
	}
	c.cfg.Log.Info("stopping what still runs", "running", c.Running())
	c.runs.stopAll(tool.ErrDrained)
	if within(stopGrace-hurriedGrace, hurry.Done()) || within(hurriedGrace, nil) {
		return nil
	}
	stopSettling()
	if within(settleGrace, nil) {
		return errors.New("drain: the server could not be told of every message; they will be delivered again")
	}
	return errors.New("drain: an execution did not end when it was stopped; its message will be delivered again")
}

func (c *Consumer) projectBound(project string) int {
	own, all := c.cfg.Rules.ProjectBound(project), c.cfg.ProjectSlots
	if own > 0 && all > 0 {
		return min(own, all)
	}
	return max(own, all)
}

// mark takes news of a lane and serves it, if there is a slot.
func (c *Consumer) mark(lane Lane, woken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sched.mark(lane, woken)
	c.grant()
}

// release returns a slot, and serves whose turn it is.
func (c *Consumer) release(lane Lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sched.release(lane)
	c.grant()
}

// grant hands out what is free. It holds c.mu, so that nothing starts any
// more once the scheduler was stopped under it.
func (c *Consumer) grant() {
	for _, f := range c.sched.grants() {
		c.work.Go(func() { c.fetch(f) })
	}
}

// fetch makes a fetch and those that follow it at once.
func (c *Consumer) fetch(f fetch) {
	for more := true; more; {
		got, err := c.ask(f)
		if err != nil {
			c.cfg.Log.Debug("fetch", "pool", f.lane.Pool, "priority", string(f.lane.Priority), "project", f.lane.Project, "error", err)
		}
		c.mu.Lock()
		f, more = c.sched.done(f, got, err)
		c.grant()
		c.mu.Unlock()
	}
}

// ask is one fetch. A panic in it must not keep the lane's slots for ever.
func (c *Consumer) ask(f fetch) (got int, err error) {
	wait := time.Duration(0)
	if f.look {
		wait = look
	}
	received := 0
	if p := panics.Try(func() {
		_, err = c.cfg.Source.Fetch(f.lane.Lane, f.n, wait, func(m Message) {
			received++
			c.receive(f.lane.Lane, m)
		})
	}); p != nil {
		c.cfg.Log.Error("fetch panicked", "panic", p.Value, "stack", string(p.Stack))
		err = p.AsError()
	}
	return received, err
}
