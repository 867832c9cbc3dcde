package warm

import (
	"sync"
	"time"
)

// killGrace is how long a server may take to end a run that it was told to
// end, before it is ended itself together with the run.
const killGrace = 100 * time.Millisecond

// ending ends one run of a server, unless that is over by itself.
type ending struct {
	server *Server
	mu     sync.Mutex
	done   bool
	timer  *time.Timer
}

// begin tells the server to end the run, and sees to it.
func (e *ending) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done {
		return
	}
	e.server.order()
	e.timer = time.AfterFunc(killGrace, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.done {
			e.server.Kill()
		}
	})
}

// over: whatever comes too late does nothing.
func (e *ending) over() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.done = true
	if e.timer != nil {
		e.timer.Stop()
	}
}
