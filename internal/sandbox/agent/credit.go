package agent

import (
	"errors"
	"sync"
)

var errEnded = errors.New("run ended")

// credit is how many bytes may be sent before the far side has taken some.
type credit struct {
	mu     sync.Mutex
	more   *sync.Cond
	n      int
	closed bool
}

func newCredit(n int) *credit {
	c := &credit{n: n}
	c.more = sync.NewCond(&c.mu)
	return c
}

// take waits for credit and returns between 1 and n bytes of it.
func (c *credit) take(n int) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.n == 0 && !c.closed {
		c.more.Wait()
	}
	if c.closed {
		return 0, errEnded
	}
	n = min(n, c.n)
	c.n -= n
	return n, nil
}

// add gives credit back; never more than the whole window is kept, whatever
// the far side says.
func (c *credit) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = min(c.n+max(n, 0), window)
	c.more.Broadcast()
}

func (c *credit) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.more.Broadcast()
}
