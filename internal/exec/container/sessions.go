package container

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
)

// session runs tasks in one container.
type session interface {
	run(ctx context.Context, p *place, t *exec.Task) (*exec.Ending, error)
	// readFile copies the regular file rel, below the workspace and without
	// following a link, to w. The error is a *tool.Fault when the session
	// broke, else about the file.
	readFile(ctx context.Context, p *place, rel string, limit int64, w io.Writer) (int64, error)
	mode() string
	// done is closed when the session is of no use any more.
	done() <-chan struct{}
	close()
}

// openTimeout bounds how long a session may take to be opened: an agent may
// have to be brought into a container through a slow engine.
const openTimeout = 2 * time.Minute

// sessions keeps one session per place, opened when it is first needed. A
// place never waits for another.
type sessions struct {
	open func(ctx context.Context, p *place) (session, error)

	mu      sync.Mutex
	keepers map[string]*keeper
	closed  bool
}

func newSessions(open func(ctx context.Context, p *place) (session, error)) *sessions {
	return &sessions{open: open, keepers: make(map[string]*keeper)}
}

// keeper is a session being opened, or open.
type keeper struct {
	ready   chan struct{} // closed once the session is open, or could not be
	session session
	err     error
}

// get gives the session of p and notes its mode there.
func (s *sessions) get(ctx context.Context, p *place) (session, error) {
	for {
		k, err := s.keeper(ctx, p)
		if err != nil {
			return nil, err
		}
		select {
		case <-k.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if k.err != nil {
			return nil, k.err
		}
		select {
		case <-k.session.done():
			s.drop(p.key(), k)
			continue
		default:
		}
		p.mode = k.session.mode()
		return k.session, nil
	}
}

func (s *sessions) keeper(ctx context.Context, p *place) (*keeper, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if k, ok := s.keepers[p.key()]; ok {
		return k, nil
	}
	k := &keeper{ready: make(chan struct{})}
	s.keepers[p.key()] = k
	// Others may wait for this session: who asked first may lose patience.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
	go func() {
		defer cancel()
		k.session, k.err = s.open(ctx, p)
		if k.err != nil {
			s.drop(p.key(), k)
		}
		close(k.ready)
		if k.session != nil {
			<-k.session.done()
			s.drop(p.key(), k)
		}
	}()
	return k, nil
}

// drop forgets a session that has ended.
func (s *sessions) drop(key string, k *keeper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keepers[key] == k {
		delete(s.keepers, key)
	}
}

// close ends all sessions, also those that are just being opened.
func (s *sessions) close() {
	s.mu.Lock()
	s.closed = true
	var all []*keeper
	for _, k := range s.keepers {
		all = append(all, k)
	}
	s.mu.Unlock()
	for _, k := range all {
		<-k.ready
		if k.session != nil {
			k.session.close()
		}
	}
}
