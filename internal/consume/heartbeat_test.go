package consume

import (
	"errors"
	"testing"
	"time"
)

// pulse is a message that counts its heartbeats.
type pulse struct {
	Message
	beats int
	err   error
}

func (p *pulse) InProgress() error {
	if p.err == nil {
		p.beats++
	}
	return p.err
}

func TestHeartbeatsAreSentWhenDue(t *testing.T) {
	now := time.Now()
	h := newHeartbeats(10 * time.Second)
	h.now = func() time.Time { return now }
	early, late := &pulse{}, &pulse{}
	first := h.start(early)
	now = now.Add(5 * time.Second)
	h.start(late)
	for range 20 {
		now = now.Add(time.Second)
		h.send()
	}
	if early.beats != 2 || late.beats != 2 || h.stale(first) {
		t.Errorf("%d and %d beats in 25 and 20 s", early.beats, late.beats)
	}
	h.stop(first)
	now = now.Add(time.Minute)
	h.send()
	if early.beats != 2 || late.beats != 3 {
		t.Errorf("%d and %d beats after the first was stopped", early.beats, late.beats)
	}
}

func TestRefusedHeartbeatStaysDue(t *testing.T) {
	now := time.Now()
	h := newHeartbeats(10 * time.Second)
	h.now = func() time.Time { return now }
	p := &pulse{err: errors.New("not connected")}
	b := h.start(p)
	now = now.Add(15 * time.Second)
	h.send()
	if h.stale(b) {
		t.Error("stale before the queue can have lost patience")
	}
	now = now.Add(20 * time.Second)
	h.send()
	if !h.stale(b) {
		t.Error("not stale after half a minute of silence")
	}
	p.err = nil
	h.send()
	if p.beats != 1 || !h.stale(b) {
		t.Errorf("%d beats, stale %v: a gap is not forgotten", p.beats, h.stale(b))
	}
}
