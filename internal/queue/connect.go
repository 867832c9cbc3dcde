package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// DefaultURL is where a server is looked for when none is named.
const DefaultURL = nats.DefaultURL

const (
	pingInterval   = 20 * time.Second
	requestTimeout = 5 * time.Second // of one call to the server; calls are retried
	maxReconnect   = 2 * time.Second
)

// Options say where the server is and how it is asked.
type Options struct {
	URL   string // "" means DefaultURL; several may be separated by commas
	Creds string // credentials file
	CA    string // PEM file of the authorities that sign the server's certificate
	Cert  string // PEM files of the client's certificate
	Key   string // and of its key
	Token string
	// Name is shown by the server for this connection.
	Name string
	// Wait waits for a server that is not there yet, until ctx ends, and says
	// so in the log. Otherwise it is ErrUnreachable. Refused credentials are
	// ErrRefused either way.
	Wait bool
	// Server connects in process to an embedded server; URL is not used then.
	Server nats.InProcessConnProvider

	Names Names
	Log   *slog.Logger // nil discards
}

// Client is one connection to the fleet's server. It reconnects for ever.
type Client struct {
	Names Names

	nc  *nats.Conn
	js  jetstream.JetStream
	log *slog.Logger

	mu          sync.Mutex
	onReconnect []func()
	epoch       context.Context // ends at the next change of the connection
	endEpoch    context.CancelFunc

	connected chan struct{} // closed at the first connection

	// incomplete: a stream or bucket did not answer and may be missing.
	incomplete atomic.Bool

	stores  sync.Map      // handles of object stores by name
	streams sync.Map      // handles of streams by name
	uploads chan struct{} // a token for each object that is being written
}

// Connect connects to the server that o names.
func Connect(ctx context.Context, o Options) (*Client, error) {
	if err := o.Names.Validate(); err != nil {
		return nil, err
	}
	c := &Client{
		Names: o.Names, log: cmp.Or(o.Log, slog.New(slog.DiscardHandler)), connected: make(chan struct{}),
		uploads: make(chan struct{}, objectsUnderWay),
	}
	c.epoch, c.endEpoch = context.WithCancel(context.Background())
	opts, err := c.options(o)
	if err != nil {
		return nil, err
	}
	url := cmp.Or(o.URL, DefaultURL)
	if c.nc, err = nats.Connect(url, opts...); err != nil {
		return nil, connectError(url, err)
	}
	if err := c.await(ctx, url, o.Wait); err != nil {
		c.nc.Close()
		return nil, err
	}
	if c.js, err = jetstream.New(c.nc, jetstream.WithDefaultTimeout(requestTimeout)); err != nil {
		c.nc.Close()
		return nil, fmt.Errorf("open JetStream: %w", err)
	}
	return c, nil
}

func (c *Client) options(o Options) ([]nats.Option, error) {
	opts := []nats.Option{
		nats.Name(o.Name),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), // a buffered publish that is retried would be stored twice
		nats.PingInterval(pingInterval),
		nats.Timeout(requestTimeout),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			c.notify()
			if err != nil {
				c.log.Warn("connection to the server lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			c.log.Info("connected to the server again", "url", nc.ConnectedUrlRedacted())
			c.notify()
			c.reconnected()
		}),
		nats.ConnectHandler(func(*nats.Conn) { close(c.connected) }),
		nats.ClosedHandler(func(*nats.Conn) { c.notify() }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			attrs := []any{"error", err}
			if sub != nil {
				attrs = append(attrs, "subject", sub.Subject)
			}
			c.log.Warn("connection to the server", attrs...)
		}),
	}
	if o.Wait {
		// Only a worker outlives a restart of the server's account set-up.
		opts = append(opts, nats.RetryOnFailedConnect(true), nats.IgnoreAuthErrorAbort())
	}
	if o.Server != nil {
		opts = append(opts, nats.InProcessServer(o.Server))
	}
	if o.Token != "" {
		opts = append(opts, nats.Token(o.Token))
	}
	if o.Creds != "" {
		opts = append(opts, nats.UserCredentials(o.Creds))
	}
	if o.CA != "" {
		opts = append(opts, nats.RootCAs(o.CA))
	}
	switch {
	case o.Cert != "" && o.Key != "":
		opts = append(opts, nats.ClientCert(o.Cert, o.Key))
	case o.Cert != "" || o.Key != "":
		return nil, errors.New("client certificate: expected both a certificate and a key file")
	}
	return opts, nil
}

// await waits for the first connection.
func (c *Client) await(ctx context.Context, url string, wait bool) error {
	for said := false; ; {
		select {
		case <-c.connected:
			return nil
		default:
		}
		if err := c.nc.LastError(); isRefusal(err) {
			return connectError(url, err)
		}
		if wait && !said && !c.nc.IsConnected() {
			said = true
			c.log.Info("waiting for the server", "url", redact(url))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the server at %s: %w", redact(url), ctx.Err())
		case <-c.connected:
		case <-time.After(time.Second): // refusals while connecting are not announced
		}
	}
}

// reconnectDelay starts short, for a server that only restarts, and spreads
// the workers of a fleet.
func reconnectDelay(attempts int) time.Duration {
	d := min(50*time.Millisecond<<min(attempts, 10), maxReconnect)
	return d/2 + rand.N(d/2+1)
}

func isRefusal(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

func connectError(url string, err error) error {
	switch {
	case isRefusal(err):
		return fmt.Errorf("connect to %s: %w: %w", redact(url), ErrRefused, err)
	case errors.Is(err, nats.ErrNoServers), errors.Is(err, nats.ErrTimeout):
		return fmt.Errorf("connect to %s: %w", redact(url), ErrUnreachable)
	}
	return fmt.Errorf("connect to %s: %w: %w", redact(url), ErrUnreachable, err)
}

// Conn is the connection itself, for what this package has no word for.
func (c *Client) Conn() *nats.Conn { return c.nc }

// JetStream is the connection's JetStream context.
func (c *Client) JetStream() jetstream.JetStream { return c.js }

// Connected reports whether the server can be asked right now.
func (c *Client) Connected() bool { return c.nc.IsConnected() }

// OnReconnect calls f after every reconnect, on its own goroutine.
func (c *Client) OnReconnect(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReconnect = append(c.onReconnect, f)
}

// Close flushes what was sent and closes the connection.
func (c *Client) Close() {
	if c.nc.IsConnected() {
		_ = c.nc.FlushTimeout(requestTimeout)
	}
	c.nc.Close()
}

func (c *Client) reconnected() {
	c.mu.Lock()
	fs := c.onReconnect
	c.mu.Unlock()
	for _, f := range fs {
		go f()
	}
}

// notify begins a new epoch: calls to the server that are under way get no
// answer any more.
func (c *Client) notify() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endEpoch()
	c.epoch, c.endEpoch = context.WithCancel(context.Background())
}

// connection lives until the connection changes next.
func (c *Client) connection() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epoch
}

// change is closed when the connection changes next.
func (c *Client) change() <-chan struct{} { return c.connection().Done() }

// publish is one publish to a stream, without retries of its own.
func (c *Client) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return c.js.PublishMsg(ctx, m, append(opts, jetstream.WithRetryAttempts(0))...)
}
