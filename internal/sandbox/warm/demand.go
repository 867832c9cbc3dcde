package warm

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"time"
)

const (
	// A kind whose slots do not start is left alone for a second, then two,
	// at last five minutes.
	firstRetry = time.Second
	lastRetry  = 5 * time.Minute
	// startAhead is how long before its age ends it a slot's successor is
	// started.
	startAhead = 2 * time.Second
	// startTimeout bounds the start of one slot.
	startTimeout = 20 * time.Second
)

// grow starts what a kind lacks for the executions that it had at a time
// lately. The caller holds the lock.
func (p *Pool[S]) grow(k *kind[S]) {
	for p.lacks(k) && p.room(k) {
		p.slots++
		p.starting++
		k.starting++
		start := k.start
		p.work.Go(func() { p.add(k, start) })
	}
}

// lacks: slots of a kind are too few, and to start one may be tried now.
func (p *Pool[S]) lacks(k *kind[S]) bool {
	have := len(k.idle) + k.starting
	if p.config.MaxUses > 1 {
		have += k.leased - k.fading // they come back, but not for long
	}
	return !p.closed && have < k.peak && p.starting < runtime.NumCPU() && !time.Now().Before(k.retry)
}

// room: there is place for one more, perhaps after one of the kind that was
// used least lately, and less lately than this one, has gone.
func (p *Pool[S]) room(k *kind[S]) bool {
	if !p.config.MayGrow() {
		return false
	}
	if p.slots < p.config.MaxSlots {
		return true
	}
	var oldest *kind[S]
	for _, other := range p.kinds {
		if len(other.idle) > 0 && other.used.Before(k.used) && (oldest == nil || other.used.Before(oldest.used)) {
			oldest = other
		}
	}
	if oldest == nil {
		return false
	}
	p.discard(oldest, oldest.idle[0])
	oldest.idle = oldest.idle[1:]
	return true
}

// add starts one slot.
func (p *Pool[S]) add(k *kind[S], start func(ctx context.Context) (S, error)) {
	ctx, cancel := context.WithTimeout(p.ctx, startTimeout)
	defer cancel()
	slot, err := start(ctx)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	k.starting--
	if err != nil {
		p.slots--
		if !p.closed {
			p.failed(k)
			k.why = err
			p.tell()
			p.config.Log.Warn("warm start does not work, executions start cold",
				slog.String("kind", k.name), slog.Any("error", err), slog.Duration("next_try", time.Until(k.retry).Round(time.Second)))
		}
	} else {
		h := &held[S]{slot: slot, until: time.Now().Add(p.config.lifetime())}
		if p.closed {
			p.discard(k, h)
			return
		}
		p.offer(k, h)
	}
	for _, other := range p.kinds { // whoever had to wait for its turn to start one
		p.grow(other)
	}
}

// failed puts off the next start of a kind.
func (p *Pool[S]) failed(k *kind[S]) {
	k.retry = time.Now().Add(min(lastRetry, firstRetry<<min(k.failures, 20)))
	k.failures++
}

// worn: a slot that is free is not to be used any more.
func (p *Pool[S]) worn(h *held[S]) bool {
	return h.uses >= p.config.MaxUses || !time.Now().Before(h.until)
}

// fades: a slot will be worn before a successor that is started now is ready
// for certain.
func (p *Pool[S]) fades(h *held[S]) bool {
	return h.uses >= p.config.MaxUses-p.config.MaxUses/8 || time.Until(h.until) < startAhead
}

// tend ends what is not needed any more, until the pool is closed.
func (p *Pool[S]) tend() {
	ticker := time.NewTicker(p.config.Idle / 4)
	defer ticker.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-ticker.C:
			p.shrink()
		}
	}
}

// shrink ends slots that were idle for long or are worn, all idle ones where
// memory is short, and forgets kinds that nobody asks for.
func (p *Pool[S]) shrink() {
	short := !p.config.MayGrow()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, k := range p.kinds {
		k.idle = slices.DeleteFunc(k.idle, func(h *held[S]) bool {
			gone := short || p.worn(h) || time.Since(h.since) >= p.config.Idle
			if gone {
				p.discard(k, h)
			}
			return gone
		})
		k.peak = min(max(k.lately, k.leases), p.config.MaxPerKind)
		k.lately = k.leases
		p.grow(k)
		if k.leases == 0 && len(k.idle) == 0 && k.starting == 0 &&
			time.Since(k.used) >= p.config.Idle && !time.Now().Before(k.retry) {
			delete(p.kinds, name)
		}
	}
}
