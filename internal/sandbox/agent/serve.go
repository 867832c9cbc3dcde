package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox"
)

// FileReader copies the content of the regular file path, relative to root
// and without following any link below it, to w. It refuses one larger than
// limit bytes.
type FileReader func(ctx context.Context, root, path string, limit int64, w io.Writer) (int64, error)

// ServeConfig is what an agent serves with.
type ServeConfig struct {
	Nonce    string // what the worker started this agent with
	Runner   sandbox.Runner
	ReadFile FileReader
	Stage    Stager
}

// Stager unpacks a tar once for each key and returns the directory.
type Stager func(key string, tar []byte) (dir string, err error)

// closeGrace bounds how long an agent waits for what it has killed.
const closeGrace = 5 * time.Second

// Serve answers the frames of r on w until r ends, then ends every run and
// returns. It returns nil at a clean end.
func Serve(ctx context.Context, r io.Reader, w io.Writer, cfg ServeConfig) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{cfg: cfg, out: newFrameWriter(w), calls: make(map[uint32]*served)}
	hello, err := encode(Hello{
		Version: protocolVersion, Nonce: cfg.Nonce, Arch: runtime.GOARCH,
		PID: os.Getpid(), UID: os.Getuid(), GID: os.Getgid(), Env: os.Environ(),
	})
	if err != nil {
		return err
	}
	if err := s.out.writePieces(kindHello, 0, hello); err != nil {
		return fmt.Errorf("send hello: %w", err)
	}
	err = s.loop(ctx, newFrameReader(r))
	cancel()
	s.wait(closeGrace)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type server struct {
	cfg ServeConfig
	out *frameWriter

	mu    sync.Mutex
	calls map[uint32]*served
	wg    sync.WaitGroup
}

// served is one run or read that the worker asked for.
type served struct {
	id     uint32
	ctx    context.Context
	cancel context.CancelFunc
	credit *credit

	// The body of a run or of files to stage as it arrives; only the loop touches it.
	kind    kind
	header  runHeader
	body    []byte
	started bool
}

func (s *server) loop(ctx context.Context, r *frameReader) error {
	for {
		f, err := r.next()
		if err != nil {
			return err
		}
		if err := s.handle(ctx, f); err != nil {
			return err
		}
	}
}

func (s *server) handle(ctx context.Context, f frame) error {
	switch f.kind {
	case kindRun, kindStage:
		return s.open(ctx, f)
	case kindBody:
		c := s.call(f.id)
		if c == nil { // cancelled before all of it had arrived
			return nil
		}
		return s.feed(c, f.payload)
	case kindRead:
		return s.read(ctx, f)
	case kindCancel:
		if c := s.call(f.id); c != nil {
			s.abandon(c)
		}
		return nil
	case kindCredit:
		if len(f.payload) != 4 {
			return fmt.Errorf("%w: credit of %d bytes", errProtocol, len(f.payload))
		}
		if c := s.call(f.id); c != nil {
			c.credit.add(int(binary.BigEndian.Uint32(f.payload)))
		}
		return nil
	case kindPing:
		return s.out.write(kindPong, f.id)
	}
	return fmt.Errorf("%w: frame of kind %d sent to an agent", errProtocol, f.kind)
}

func (s *server) call(id uint32) *served {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[id]
}

func (s *server) register(ctx context.Context, id uint32) (*served, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == 0 || s.calls[id] != nil {
		return nil, fmt.Errorf("%w: run %d opened twice", errProtocol, id)
	}
	ctx, cancel := context.WithCancel(ctx)
	c := &served{id: id, ctx: ctx, cancel: cancel, credit: newCredit(window)}
	context.AfterFunc(ctx, c.credit.close)
	s.calls[id] = c
	return c, nil
}

func (s *server) finish(c *served) {
	s.mu.Lock()
	delete(s.calls, c.id)
	s.mu.Unlock()
	c.cancel()
}

// abandon ends a run; one whose body is still arriving is answered here.
func (s *server) abandon(c *served) {
	c.cancel()
	if c.header != (runHeader{}) && !c.started {
		s.finish(c)
		s.exit(c.id, &exitDoc{Code: 137, Signal: "SIGKILL"})
	}
}

func (s *server) wait(d time.Duration) {
	done := make(chan struct{})
	go func() { s.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(d):
	}
}
