package main

import (
	"testing"
	"time"
)

// eventually waits for a condition that something else brings about.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for ticks := time.Tick(time.Millisecond); !holds(); {
		select {
		case <-ticks:
		case <-deadline:
			t.Fatal("it does not come about")
		}
	}
}
