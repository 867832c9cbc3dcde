// Package queuetest runs JetStream servers inside tests, and connects to them.
package queuetest

import (
	"context"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/toolworker/toolworker/internal/queue"
)

const ready = 10 * time.Second

// Server is a JetStream server that can be stopped and started again, with
// what it has stored, at the same address.
type Server struct {
	t    testing.TB
	opts server.Options

	mu  sync.Mutex
	srv *server.Server
}

// Start starts a server on a free port, with its store below t.TempDir. Its
// end is the test's.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, opts: server.Options{
		ServerName: "test", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40, JetStreamMaxMemory: 1 << 30,
		NoSigs: true, NoLog: true,
	}}
	s.Start()
	t.Cleanup(s.Stop)
	_, port, err := net.SplitHostPort(s.server().Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s.opts.Port, _ = strconv.Atoi(port)
	return s
}

// URL is where the server listens.
func (s *Server) URL() string { return s.server().ClientURL() }

// Start starts a server that was stopped.
func (s *Server) Start() {
	s.t.Helper()
	opts := s.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(ready) {
		s.t.Fatal("server is not ready")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv = srv
}

func (s *Server) server() *server.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// Stop stops the server; what it has stored stays.
func (s *Server) Stop() {
	srv := s.server()
	srv.Shutdown()
	srv.WaitForShutdown()
}

// Restart stops the server and starts it again.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	s.Start()
}

// Connect connects to the server, without a topology.
func (s *Server) Connect(o queue.Options) *queue.Client {
	s.t.Helper()
	o.URL = s.URL()
	c, err := queue.Connect(context.Background(), o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

// Fleet connects to the server and makes the topology of these pools.
func (s *Server) Fleet(pools ...string) *queue.Client {
	s.t.Helper()
	c := s.Connect(queue.Options{Name: s.t.Name(), Wait: true, Log: Log(s.t)})
	ctx, cancel := context.WithTimeout(context.Background(), ready)
	defer cancel()
	if _, err := c.Ensure(ctx, queue.Topology{Names: c.Names, Pools: pools}); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// FleetLater connects to a server that may be down right now.
func (s *Server) FleetLater() *queue.Client {
	c, err := queue.Connect(context.Background(), queue.Options{URL: s.URL(), Wait: true})
	if err != nil {
		s.t.Error(err)
		return nil
	}
	s.t.Cleanup(c.Close)
	return c
}

// Log writes to the test's own log, until the test ends. Benchmarks have none.
func Log(t testing.TB) *slog.Logger {
	if _, bench := t.(*testing.B); bench {
		return slog.New(slog.DiscardHandler)
	}
	w := &writer{t: t}
	t.Cleanup(w.close)
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// Until waits for a condition, with a deadline that only a failure reaches.
func Until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until " + what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
