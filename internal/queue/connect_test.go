package queue_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

// lines collects what is logged.
type lines struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) contain(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.all.String(), s)
}

func TestWorkerWaitsForItsServer(t *testing.T) {
	s := queuetest.Start(t)
	url := s.URL()
	s.Stop()
	var log lines
	connected := make(chan *queue.Client, 1)
	go func() {
		c, err := queue.Connect(context.Background(), queue.Options{URL: url, Wait: true, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Error(err)
		}
		connected <- c
	}()
	queuetest.Until(t, "it says that it waits", func() bool { return log.contain("waiting for the server") })
	s.Start()
	select {
	case c := <-connected:
		if c == nil || !c.Connected() {
			t.Fatal("not connected")
		}
		if _, err := c.Ensure(t.Context(), queue.Topology{}); err != nil {
			t.Error(err)
		}
		c.Close()
	case <-time.After(20 * time.Second):
		t.Fatal("the worker does not notice its server")
	}
}

func TestWaitingForAServerEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := queue.Connect(ctx, queue.Options{URL: "nats://127.0.0.1:1", Wait: true})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestUnreachableServer(t *testing.T) {
	_, err := queue.Connect(t.Context(), queue.Options{URL: "nats://user:secret@127.0.0.1:1"})
	if !errors.Is(err, queue.ErrUnreachable) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func TestConnectRefusesNonsense(t *testing.T) {
	for want, o := range map[string]queue.Options{
		"expected both a certificate and a key": {Cert: "cert.pem"},
		"stream prefix":                         {Names: queue.Names{StreamPrefix: "A B"}},
		"missing.creds":                         {Creds: "missing.creds"},
		"missing-ca.pem":                        {CA: "missing-ca.pem"},
	} {
		if _, err := queue.Connect(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, expected %s", o, err, want)
		}
	}
}

func TestReconnectIsTold(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Connect(queue.Options{Wait: true})
	told := make(chan struct{}, 10)
	c.OnReconnect(func() { told <- struct{}{} })
	s.Restart()
	select {
	case <-told:
	case <-time.After(20 * time.Second):
		t.Fatal("nobody was told of the reconnect")
	}
}
