package consume

import "sync"

const (
	// minParked is how many requests of a tool at its bound a worker keeps at
	// least, so that the tool never waits for the next one to be fetched.
	minParked = 32
	// maxParkedBytes bounds the bodies of all parked requests.
	maxParkedBytes = 32 << 20
)

// bounds count the running requests of tools that have a bound of their own.
// A tool is known only once its request is decoded, so requests above the
// bound are parked: they wait here without a slot, a few of them.
type bounds struct {
	mu    sync.Mutex
	tools map[string]*toolBound
	bytes int // of what is parked
}

type toolBound struct {
	limit   int // as it was asked for last
	running int
	parked  []*place
}

// place is where a request waits for its tool.
type place struct {
	size    int
	granted chan struct{}
}

func newBounds() *bounds { return &bounds{tools: map[string]*toolBound{}} }

// enter takes one of limit places of a tool for a request of size bytes. When
// all are taken it returns the place to wait at, or nil when too many wait
// already.
func (b *bounds) enter(name string, limit, size int) (wait *place, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tools[name]
	if t == nil {
		t = &toolBound{}
		b.tools[name] = t
	}
	t.limit = limit
	b.grant(t)
	if t.running < limit {
		t.running++
		return nil, true
	}
	if len(t.parked) >= max(minParked, 4*limit) || b.bytes+size > maxParkedBytes {
		return nil, false
	}
	wait = &place{size: size, granted: make(chan struct{})}
	b.bytes += size
	t.parked = append(t.parked, wait)
	return wait, false
}

// leave returns a place.
func (b *bounds) leave(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tools[name]
	t.running--
	b.grant(t)
	if t.running == 0 && len(t.parked) == 0 {
		delete(b.tools, name)
	}
}

// withdraw stops waiting; false when the place was granted and has to be
// returned.
func (b *bounds) withdraw(name string, w *place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tools[name]
	if t == nil {
		return false
	}
	for i, p := range t.parked {
		if p == w {
			t.parked = append(t.parked[:i:i], t.parked[i+1:]...)
			b.bytes -= w.size
			return true
		}
	}
	return false
}

// grant lets in those that have waited longest.
func (b *bounds) grant(t *toolBound) {
	for t.running < t.limit && len(t.parked) > 0 {
		w := t.parked[0]
		t.parked = t.parked[1:]
		b.bytes -= w.size
		t.running++
		close(w.granted)
	}
}
