package consume

import (
	"context"
	"sync"
	"time"
)

// Heartbeat is how often the queue is told that a message is being worked
// on, a third of the time after which it would deliver it again.
const Heartbeat = 10 * time.Second

// staleAfter is how long a message may go without a heartbeat that was sent:
// afterwards somebody else may have been given it.
const staleAfter = 25 * time.Second

// heartbeats keeps messages alive with one ticker for all of them.
type heartbeats struct {
	interval time.Duration
	now      func() time.Time

	mu    sync.Mutex
	beats map[*beat]struct{}
}

// beat is one message that is kept alive.
type beat struct {
	message Message
	due     time.Time
	sent    time.Time // the last one that the connection took
	late    bool      // there was a gap of staleAfter or more
}

func newHeartbeats(interval time.Duration) *heartbeats {
	return &heartbeats{interval: interval, now: time.Now, beats: map[*beat]struct{}{}}
}

// start keeps m alive from now on.
func (h *heartbeats) start(m Message) *beat {
	now := h.now()
	b := &beat{message: m, due: now.Add(h.interval), sent: now}
	h.mu.Lock()
	h.beats[b] = struct{}{}
	h.mu.Unlock()
	return b
}

func (h *heartbeats) stop(b *beat) {
	h.mu.Lock()
	delete(h.beats, b)
	h.mu.Unlock()
}

// stale reports whether the queue may have given the message to somebody else.
func (h *heartbeats) stale(b *beat) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return b.late || h.now().Sub(b.sent) >= staleAfter
}

// run sends what is due until ctx ends.
func (h *heartbeats) run(ctx context.Context) {
	ticker := time.NewTicker(h.interval / 10)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			h.send()
		}
	}
}

// send sends what is due. What the connection refuses stays due.
func (h *heartbeats) send() {
	now := h.now()
	var due []*beat
	h.mu.Lock()
	for b := range h.beats {
		if !b.due.After(now) {
			due = append(due, b)
		}
	}
	h.mu.Unlock()
	for _, b := range due {
		if b.message.InProgress() != nil {
			continue
		}
		h.mu.Lock()
		b.late = b.late || now.Sub(b.sent) >= staleAfter
		b.sent, b.due = now, now.Add(h.interval)
		h.mu.Unlock()
	}
}
