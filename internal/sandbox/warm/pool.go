package warm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Slot is what a Pool holds: it can be given one execution at a time.
type Slot interface {
	// Close ends the slot. It may take as long as its processes need to die.
	Close() error
}

// Pool keeps slots by kind. A kind is everything that two executions must
// have in common to follow each other in one slot; slots of one kind never
// serve another.
type Pool[S Slot] struct {
	config Config
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	kinds    map[string]*kind[S]
	news     chan struct{} // closed and made anew when a start has ended
	slots    int           // idle, leased and starting, of all kinds
	starting int           // of all kinds
}

// kind are the slots of one kind and what is known of the demand for them.
type kind[S Slot] struct {
	name     string
	start    func(ctx context.Context) (S, error)
	idle     []*held[S] // the one used last at the end
	leases   int        // executions that run now, those without a slot included
	leased   int        // slots among them
	starting int
	fading   int // idle and leased slots that will be worn soon
	peak     int // most leases at a time in this round of tend and the one before
	lately   int // in this round
	used     time.Time
	waiting  []chan *held[S]
	// After failed starts none is tried before retry.
	failures int
	retry    time.Time
	why      error // of the last one that failed
}

type held[S Slot] struct {
	slot  S
	until time.Time // when it is worn by age
	since time.Time // when it was used last
	uses  int
	// fading: its successor is started while it still works.
	fading bool
}

// NewPool returns an empty pool.
func NewPool[S Slot](c Config) *Pool[S] {
	p := &Pool[S]{config: c.WithDefaults(), kinds: map[string]*kind[S]{}, news: make(chan struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.work.Go(p.tend)
	return p
}

// Lease is an execution's claim. Release it exactly once.
type Lease[S Slot] struct {
	pool *Pool[S]
	kind *kind[S]
	held *held[S]
}

// Slot is the leased slot; ok is false when there is none and the execution
// goes another way. The lease then counts as demand only.
func (l *Lease[S]) Slot() (slot S, ok bool) {
	if l.held == nil {
		return slot, false
	}
	return l.held.slot, true
}

// Acquire leases a slot of a kind. When none is idle it waits for one, but
// only where others are busy, and no longer than the configured patience;
// slots that are missing are started in the background with start.
func (p *Pool[S]) Acquire(ctx context.Context, name string, start func(ctx context.Context) (S, error)) *Lease[S] {
	p.mu.Lock()
	k := p.kinds[name]
	if k == nil {
		k = &kind[S]{name: name}
		p.kinds[name] = k
	}
	k.start, k.used = start, time.Now()
	k.leases++
	k.lately = max(k.lately, k.leases)
	k.peak = min(max(k.peak, k.lately), p.config.MaxPerKind)
	l := &Lease[S]{pool: p, kind: k}
	if p.closed {
		p.mu.Unlock()
		return l
	}
	for len(k.idle) > 0 && l.held == nil {
		h := k.idle[len(k.idle)-1]
		k.idle = k.idle[:len(k.idle)-1]
		if p.worn(h) {
			p.discard(k, h)
			continue
		}
		l.held = h
		k.leased++
	}
	p.grow(k)
	if l.held != nil || k.leased == 0 || p.config.MaxUses == 1 {
		p.mu.Unlock()
		return l
	}
	turn := make(chan *held[S], 1)
	k.waiting = append(k.waiting, turn)
	p.mu.Unlock()

	timer := time.NewTimer(p.config.Patience)
	defer timer.Stop()
	select {
	case l.held = <-turn:
	case <-timer.C:
	case <-ctx.Done():
	}
	if l.held == nil {
		l.held = p.giveUp(k, turn)
	}
	return l
}

// giveUp ends a wait; a slot that came at the last moment is taken.
func (p *Pool[S]) giveUp(k *kind[S], turn chan *held[S]) *held[S] {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range k.waiting {
		if w == turn {
			k.waiting = append(k.waiting[:i], k.waiting[i+1:]...)
			return nil
		}
	}
	return <-turn
}

// Outcome says what a lease did to its slot.
type Outcome int

// The outcomes.
const (
	// Fine: the slot may be used again.
	Fine Outcome = iota
	// Spent: the slot is used up, and nothing is wrong with its kind.
	Spent
	// Broken: slots of this kind may not work at all; starting new ones waits.
	Broken
)

// Release ends a lease.
func (l *Lease[S]) Release(o Outcome) {
	p, k := l.pool, l.kind
	p.mu.Lock()
	defer p.mu.Unlock()
	k.leases--
	k.used = time.Now()
	h := l.held
	if h == nil {
		return
	}
	k.leased--
	h.uses++
	if o == Broken {
		p.failed(k)
	} else {
		k.failures = 0
	}
	if o != Fine || p.closed || p.worn(h) {
		p.discard(k, h)
		p.grow(k)
		return
	}
	if !h.fading && p.fades(h) {
		h.fading = true
		k.fading++
		p.grow(k)
	}
	p.offer(k, h)
}

// offer gives a slot to who waits for it, or keeps it idle.
func (p *Pool[S]) offer(k *kind[S], h *held[S]) {
	if len(k.waiting) > 0 {
		turn := k.waiting[0]
		k.waiting = k.waiting[1:]
		k.leased++
		turn <- h
		return
	}
	h.since = time.Now()
	defer p.tell()
	if h.fading {
		k.idle = slices.Insert(k.idle, 0, h) // its successor first
		return
	}
	k.idle = append(k.idle, h)
}

// discard ends a slot in the background. The caller holds the lock and no
// longer counts the slot among the idle or leased ones.
func (p *Pool[S]) discard(k *kind[S], h *held[S]) {
	p.slots--
	if h.fading {
		k.fading--
	}
	p.work.Go(func() {
		if err := h.slot.Close(); err != nil {
			p.config.Log.Warn("warm slot did not end well", slog.Any("error", err))
		}
	})
}

// Close ends all slots and returns when they are gone. Leases that are still
// out end theirs at their release; Close does not wait for that.
func (p *Pool[S]) Close() {
	p.mu.Lock()
	p.closed = true
	p.tell()
	for _, k := range p.kinds {
		for _, h := range k.idle {
			p.discard(k, h)
		}
		k.idle = nil
	}
	p.mu.Unlock()
	p.stop()
	p.work.Wait()
}

// Prepare waits until a slot of a kind waits to be used. An error says why
// none will for now.
func (p *Pool[S]) Prepare(ctx context.Context, name string, start func(ctx context.Context) (S, error)) error {
	if p.Ready(name) > 0 {
		return nil
	}
	p.Acquire(ctx, name, start).Release(Fine) // the demand
	for {
		p.mu.Lock()
		k, news, closed := p.kinds[name], p.news, p.closed
		switch {
		case closed:
			p.mu.Unlock()
			return errors.New("warm pool is closed")
		case k != nil && len(k.idle) > 0:
			p.mu.Unlock()
			return nil
		case k == nil || k.starting == 0 && k.leased == 0 && p.starting == 0:
			why := errNoRoom
			if k != nil && k.why != nil {
				why = k.why
			}
			p.mu.Unlock()
			return fmt.Errorf("keep %s ready: %w", name, why)
		}
		p.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("keep %s ready: %w", name, context.Cause(ctx))
		}
	}
}

var errNoRoom = errors.New("no memory, or too many others are kept ready")

// tell wakes those who wait for news. The caller holds the lock.
func (p *Pool[S]) tell() {
	close(p.news)
	p.news = make(chan struct{})
}

// Ready is how many slots of a kind wait to be used.
func (p *Pool[S]) Ready(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.kinds[name]; k != nil {
		return len(k.idle)
	}
	return 0
}

// Idle is how many slots wait to be used, and All how many there are,
// starting ones included.
func (p *Pool[S]) Idle() (idle, all int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kinds {
		idle += len(k.idle)
	}
	return idle, p.slots
}
