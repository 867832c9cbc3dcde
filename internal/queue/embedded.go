package queue

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// Defaults of the embedded server.
const (
	DefaultListen  = "127.0.0.1:4222"
	DefaultDataDir = ".toolworker"
)

const (
	readyTimeout = 10 * time.Second
	// The disk is the bound: limits computed from what is free right now would
	// refuse the streams' own maximum on a small disk.
	embeddedStore  = 1 << 40
	embeddedMemory = 1 << 30
)

// EmbeddedOptions say where the embedded server listens and stores.
type EmbeddedOptions struct {
	Listen  string // host:port; port 0 takes a free one; "" means DefaultListen
	DataDir string // made when missing; "" means DefaultDataDir
	Log     *slog.Logger
}

// Embedded is a JetStream server inside this process.
type Embedded struct {
	server *server.Server
	lock   *os.File
	url    string
	token  string
}

// StartEmbedded starts a server and returns when it can be connected to.
func StartEmbedded(o EmbeddedOptions) (*Embedded, error) {
	dir, err := filepath.Abs(cmp.Or(o.DataDir, DefaultDataDir))
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	listen := cmp.Or(o.Listen, DefaultListen)
	host, port, err := parseListen(listen)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	e := &Embedded{lock: lock}
	if e.token, err = ensureToken(dir); err == nil {
		err = e.start(host, port, dir, cmp.Or(o.Log, slog.New(slog.DiscardHandler)))
	}
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return e, nil
}

func (e *Embedded) start(host string, port int, dir string, log *slog.Logger) error {
	if err := probeListen(host, port); err != nil {
		return err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName:             "toolworker",
		Host:                   host,
		Port:                   port,
		Authorization:          e.token,
		JetStream:              true,
		StoreDir:               dir,
		JetStreamMaxStore:      embeddedStore,
		JetStreamMaxMemory:     embeddedMemory,
		NoSigs:                 true,
		DisableJetStreamBanner: true,
	})
	if err != nil {
		return fmt.Errorf("set up embedded server: %w", err)
	}
	events := newServerLog(log)
	s.SetLogger(events, false, false)
	s.Start()
	ready := make(chan bool, 1)
	go func() { ready <- s.ReadyForConnections(readyTimeout) }()
	select {
	case ok := <-ready:
		err = errors.New("not ready in time")
		if ok {
			err = nil
		}
	case err = <-events.fatal:
	}
	if err == nil && !s.JetStreamEnabled() {
		err = fmt.Errorf("its JetStream is off: %s", cmp.Or(events.lastError(), "unknown reason"))
	}
	if err != nil {
		s.Shutdown()
		s.WaitForShutdown()
		return fmt.Errorf("start embedded server: %w", err)
	}
	e.server = s
	e.url = "nats://" + s.Addr().String()
	return nil
}

// URL is where the server listens, without its token.
func (e *Embedded) URL() string { return e.url }

// Token is what the server asks of those that connect.
func (e *Embedded) Token() string { return e.token }

// Server connects in process, for Options.Server.
func (e *Embedded) Server() *server.Server { return e.server }

// Options completes o, so that Connect reaches this server in process.
func (e *Embedded) Options(o Options) Options {
	o.URL, o.Token, o.Server = e.url, e.token, e.server
	return o
}

// Shutdown stops the server with everything stored. It is idempotent.
func (e *Embedded) Shutdown() {
	e.server.Shutdown()
	e.server.WaitForShutdown()
	_ = e.lock.Close()
}

func parseListen(listen string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: expected host:port", listen)
	}
	port, err = strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen address %q: expected a port between 0 and 65535", listen)
	}
	return cmp.Or(host, "0.0.0.0"), port, nil
}

// probeListen says in a person's words why the server could not listen.
func probeListen(host string, port int) error {
	addr := net.JoinHostPort(host, strconv.Itoa(port))
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, unix.EADDRINUSE) {
		return fmt.Errorf("%s is in use (hint: --embedded-listen with another port, or --nats-url to use the server there)", addr)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l.Close()
}
