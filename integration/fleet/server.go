package fleet

import (
	"testing"

	"github.com/toolworker/toolworker/integration/natsserver"
)

// Server starts a nats-server process that ends with the test.
func Server(t testing.TB, args ...string) *natsserver.Server {
	t.Helper()
	s := LaterServer(t, args...)
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// LaterServer prepares a nats-server process that Restart starts.
func LaterServer(t testing.TB, args ...string) *natsserver.Server {
	t.Helper()
	s, err := natsserver.New(t.TempDir(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("log of nats-server:\n%s", s.Log())
		}
	})
	return s
}
