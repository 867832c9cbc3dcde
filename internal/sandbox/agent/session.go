package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// Errors of a session. Each reaches a caller inside a [tool.Fault].
var (
	// ErrLost: the stream to the agent ended or broke while something ran.
	ErrLost = errors.New("container agent lost")
	// ErrUnresponsive: the agent did not answer in time and was given up.
	ErrUnresponsive = errors.New("container agent does not answer")
)

// timing is after what time an agent that says nothing is given up.
type timing struct {
	hello time.Duration
	// While something runs the agent is pinged this often, and given up
	// after so long without a word.
	ping, silence time.Duration
	// grace is allowed after a cancel, and after a run's own time is up.
	grace time.Duration
}

var defaultTiming = timing{hello: 20 * time.Second, ping: 5 * time.Second, silence: 20 * time.Second, grace: 5 * time.Second}

// Session is the worker's side of one agent. It is a sandbox.Runner whose
// processes live where the agent is; all its methods may be called from any
// number of goroutines.
type Session struct {
	conn   io.ReadWriteCloser
	out    *frameWriter
	hello  Hello
	timing timing

	mu    sync.Mutex
	calls map[uint32]*call
	last  uint32 // the highest id given out
	err   error  // why the session ended

	done  chan struct{}
	heard atomic.Int64 // when the agent last said something, unix nanoseconds
}

// NewSession waits for the agent at the other end of conn to say hello with
// this nonce. The session owns conn from now on, also when it fails.
func NewSession(ctx context.Context, conn io.ReadWriteCloser, nonce string) (*Session, error) {
	return newSession(ctx, conn, nonce, defaultTiming)
}

func newSession(ctx context.Context, conn io.ReadWriteCloser, nonce string, t timing) (*Session, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.hello, fmt.Errorf("no hello within %v: %w", t.hello, ErrUnresponsive))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	s := &Session{
		conn: conn, out: newFrameWriter(conn), timing: t,
		calls: make(map[uint32]*call), done: make(chan struct{}),
	}
	r := newFrameReader(conn)
	err := s.greet(r, nonce)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("greet container agent: %w", err)
	}
	s.heard.Store(time.Now().UnixNano())
	go s.receive(r)
	go s.watch()
	return s, nil
}

// greet reads the hello. Anything else on the stream, such as an engine's
// complaint that there is no such program, is quoted in the error.
func (s *Session) greet(r *frameReader, nonce string) error {
	var doc []byte
	for more := true; more; {
		f, err := r.next()
		if err != nil {
			return errors.Join(err, r.quote())
		}
		if f.kind != kindHello || f.id != 0 || len(f.payload) == 0 || len(doc) > MaxSpec {
			return fmt.Errorf("%w: frame of kind %d instead of a hello", errProtocol, f.kind)
		}
		more = f.payload[0] == 1
		doc = append(doc, f.payload[1:]...)
	}
	if err := decode(doc, &s.hello); err != nil {
		return err
	}
	if s.hello.Nonce != nonce || s.hello.Version != protocolVersion {
		return fmt.Errorf("%w: hello of another agent, version %d", errProtocol, s.hello.Version)
	}
	return nil
}

// Hello is what the agent said of itself.
func (s *Session) Hello() Hello { return s.hello }

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Err says why the session ended; nil while it has not.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Close ends the session, and with it the agent and everything it runs. It
// is idempotent.
func (s *Session) Close() error {
	s.fail(ErrLost)
	return nil
}

// fail ends the session for this reason; the first reason stays.
func (s *Session) fail(err error) {
	s.mu.Lock()
	if s.err != nil {
		s.mu.Unlock()
		return
	}
	s.err = err
	close(s.done)
	s.mu.Unlock()
	_ = s.conn.Close()
}

func (s *Session) fault() error { return &tool.Fault{Err: s.Err()} }

// open registers a call under a new id.
func (s *Session) open() (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, &tool.Fault{Err: s.err}
	}
	s.last++
	if s.last == 0 { // 2^32 runs ago
		s.last = 1
	}
	c := newCall(s.last)
	s.calls[c.id] = c
	return c, nil
}

func (s *Session) forget(c *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, c.id)
	close(c.gone)
}

// receive hands what the agent says to the calls that wait for it, until the
// stream ends.
func (s *Session) receive(r *frameReader) {
	for {
		f, err := r.next()
		if err == nil {
			s.heard.Store(time.Now().UnixNano())
			err = s.dispatch(f)
		}
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrLost, err))
			return
		}
	}
}

func (s *Session) dispatch(f frame) error {
	switch f.kind {
	case kindPong:
		return nil
	case kindStdout, kindStderr, kindExit:
	default:
		return fmt.Errorf("%w: frame of kind %d sent to a worker", errProtocol, f.kind)
	}
	s.mu.Lock()
	c, known := s.calls[f.id], f.id != 0 && f.id <= s.last
	s.mu.Unlock()
	switch {
	case c != nil:
		return c.deliver(f)
	case known: // of a call that was given up
		return nil
	}
	return fmt.Errorf("%w: output of run %d, which was never started", errProtocol, f.id)
}

// watch pings the agent while something runs, and gives it up when it stays
// silent: its container may be paused, or its machine gone.
func (s *Session) watch() {
	tick := time.NewTicker(s.timing.ping)
	defer tick.Stop()
	busySince := time.Time{}
	for {
		select {
		case <-s.done:
			return
		case now := <-tick.C:
			s.mu.Lock()
			busy := len(s.calls) > 0
			s.mu.Unlock()
			if !busy {
				busySince = time.Time{}
				continue
			}
			if busySince.IsZero() {
				busySince = now
			}
			heard := time.Unix(0, s.heard.Load())
			if heard.Before(busySince) {
				heard = busySince
			}
			if now.Sub(heard) > s.timing.silence {
				s.fail(fmt.Errorf("%w: silent for %v", ErrUnresponsive, s.timing.silence))
				return
			}
			go func() { _ = s.out.write(kindPing, 0) }() // may block as long as the agent reads nothing
		}
	}
}
