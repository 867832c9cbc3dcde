package main

import (
	"net/http"
	"testing"

	"go.uber.org/goleak"
)

// TestRunLeavesNothingBehind: whoever runs a worker inside a program of their
// own, as the demonstration does, gets every goroutine back.
func TestRunLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	catalogue, _ := newCatalogue(t)
	w := start(t, t.TempDir(), "--catalog", catalogue, "--container-engine=off")
	client := w.client()
	w.await("ready")
	send(t, client, inline("r-1", "print(1)"))
	result(t, client, "demo", "r-1")
	client.Close()
	w.interrupt()
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
