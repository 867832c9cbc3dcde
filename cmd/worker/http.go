package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// readiness is asked at every /readyz: a reason for each thing that is not
// ready, none when all is well.
type readiness func() []string

// health serves /healthz, /readyz and /metrics.
type health struct {
	server   *http.Server
	listener net.Listener
}

// newHealth listens on address. metrics may be nil.
func newHealth(address string, ready readiness, metrics http.Handler) (*health, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--http-listen: %w (another port, or --http-listen= turns it off)", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		respond(w, http.StatusOK, status{Status: "ok"})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if reasons := ready(); len(reasons) > 0 {
			respond(w, http.StatusServiceUnavailable, status{Status: "not ready", Reasons: reasons})
			return
		}
		respond(w, http.StatusOK, status{Status: "ready"})
	})
	if metrics != nil {
		mux.Handle("GET /metrics", metrics)
	}
	return &health{
		listener: listener,
		server: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: 5 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
		},
	}, nil
}

// URL is where it is served.
func (h *health) URL() string { return "http://" + h.listener.Addr().String() }

// serve serves until close.
func (h *health) serve(log *slog.Logger) {
	if err := h.server.Serve(h.listener); !errors.Is(err, http.ErrServerClosed) {
		log.Error("serve http", "error", err)
	}
}

// close ends it; requests under way get a second.
func (h *health) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.server.Shutdown(ctx); err != nil {
		_ = h.server.Close()
	}
}

// status is the body of /healthz and /readyz.
type status struct {
	Status  string   `json:"status"`
	Reasons []string `json:"reasons,omitempty"`
}

func respond(w http.ResponseWriter, code int, s status) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(s) // the client may have gone
}
