package main

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

func TestHealth(t *testing.T) {
	var reasons atomic.Pointer[[]string]
	reasons.Store(&[]string{"not connected to NATS", "catalogue is not loaded"})
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") })
	h, err := newHealth("127.0.0.1:0", func() []string { return *reasons.Load() }, metrics)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { h.serve(slog.New(slog.DiscardHandler)); close(served) }()
	get := func(path string) (int, string) {
		t.Helper()
		resp, err := http.Get(h.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.TrimSpace(string(body))
	}
	check := func(path string, code int, want string) {
		t.Helper()
		if got, body := get(path); got != code || body != want {
			t.Errorf("%s: %d %s, want %d %s", path, got, body, code, want)
		}
	}
	check("/healthz", 200, `{"status":"ok"}`)
	check("/readyz", 503, `{"status":"not ready","reasons":["not connected to NATS","catalogue is not loaded"]}`)
	reasons.Store(&[]string{})
	check("/readyz", 200, `{"status":"ready"}`)
	check("/metrics", 200, "up 1")
	if code, _ := get("/"); code != 404 {
		t.Errorf("/: %d", code)
	}

	if _, err := newHealth(strings.TrimPrefix(h.URL(), "http://"), nil, nil); err == nil || !strings.Contains(err.Error(), "--http-listen") {
		t.Errorf("a port in use: %v", err)
	}
	h.close()
	<-served
}
