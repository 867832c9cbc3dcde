package agent

import (
	"fmt"
	"sync"
)

// call is one run or read in flight: a queue from the session's receiver to
// the caller. It holds at most one window of output.
type call struct {
	id   uint32
	wake chan struct{} // has a token when there is something to take
	// opened is closed when the agent has been told of the call, gone when
	// nobody waits for it any more.
	opened, gone chan struct{}

	mu     sync.Mutex
	queue  []piece
	queued int // bytes in queue and not yet credited
	doc    []byte
	ended  bool
}

// piece is output as it arrived.
type piece struct {
	kind kind
	data []byte
}

func newCall(id uint32) *call {
	return &call{id: id, wake: make(chan struct{}, 1), opened: make(chan struct{}), gone: make(chan struct{})}
}

func (c *call) over() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// deliver copies what the frame carries. It never blocks: a far side that
// sends more than it has credit for breaks the protocol.
func (c *call) deliver(f frame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return fmt.Errorf("%w: run %d goes on after its end", errProtocol, f.id)
	}
	if f.kind == kindExit {
		if len(f.payload) == 0 || len(c.doc)+len(f.payload) > maxExit {
			return fmt.Errorf("%w: exit of run %d", errProtocol, f.id)
		}
		c.doc = append(c.doc, f.payload[1:]...)
		if f.payload[0] == 1 {
			return nil
		}
		c.ended = true
	} else {
		c.queued += len(f.payload)
		if len(f.payload) == 0 || c.queued > window {
			return fmt.Errorf("%w: run %d sent output that it may not", errProtocol, f.id)
		}
		c.queue = append(c.queue, piece{f.kind, append([]byte(nil), f.payload...)})
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// take returns what has arrived since the last call, in order, and whether
// the call has ended.
func (c *call) take() (q []piece, ended bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	q, c.queue = c.queue, nil
	return q, c.ended
}

// consumed notes that n bytes have left the process; the far side may then
// be given as much credit.
func (c *call) consumed(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queued -= n
}
