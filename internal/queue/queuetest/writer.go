package queuetest

import (
	"bytes"
	"sync"
	"testing"
)

// writer passes lines on to a test's log while the test runs: connections
// speak until they are closed, which is after the test.
type writer struct {
	t testing.TB

	mu     sync.Mutex
	closed bool
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.t.Log(string(bytes.TrimRight(p, "\n")))
	}
	return len(p), nil
}

func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}
