package agent

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

var _ sandbox.Runner = (*Session)(nil)

// Run implements sandbox.Runner. Its error is a *tool.Fault around ErrLost or
// ErrUnresponsive when the agent went away, else around what the agent's own
// runner said.
func (s *Session) Run(ctx context.Context, spec *sandbox.Spec) (*sandbox.Exit, error) {
	doc, err := encode(newSpecDoc(spec))
	if err != nil {
		return nil, err
	}
	h := runHeader{spec: uint32(len(doc)), code: uint32(len(spec.Code)), input: uint64(len(spec.Input))}
	if err := h.check(); err != nil {
		return &sandbox.Exit{StartError: err.Error(), Code: -1}, nil
	}
	if t := spec.Limits.Timeout(); t > 0 {
		timer := time.AfterFunc(t+s.timing.grace, func() {
			s.fail(fmt.Errorf("%w: no end %v after the run's time was up", ErrUnresponsive, s.timing.grace))
		})
		defer timer.Stop()
	}
	answer, err := s.do(ctx, func(c *call) error {
		return s.send(c, kindRun, h, doc, spec.Code, spec.Input)
	}, spec.Stdout, spec.Stderr)
	if err != nil {
		return nil, err
	}
	var x exitDoc
	if err := errors.Join(decode(answer, &x), x.check()); err != nil {
		s.fail(err)
		return nil, s.fault()
	}
	if x.Fault != "" {
		return nil, &tool.Fault{Err: fmt.Errorf("container agent: %s", x.Fault)}
	}
	return x.exit(), nil
}

// ReadFile copies the regular file path, relative to root inside the
// container, to w. The agent follows no link below root and refuses a file
// of more than limit bytes; it says so in an error that is no Fault.
func (s *Session) ReadFile(ctx context.Context, root, path string, limit int64, w io.Writer) (int64, error) {
	doc, err := encode(readDoc{Root: root, Path: path, Max: limit})
	if err != nil {
		return 0, err
	}
	counted := &counter{w: w, limit: limit}
	answer, err := s.do(ctx, func(c *call) error {
		defer close(c.opened)
		return s.out.write(kindRead, c.id, doc)
	}, counted, nil)
	if err != nil {
		return 0, err
	}
	var end fileDoc
	if err := decode(answer, &end); err != nil {
		s.fail(err)
		return 0, s.fault()
	}
	switch {
	case end.Error != "":
		return 0, errors.New(end.Error)
	case counted.err != nil:
		return 0, counted.err
	case end.Size != counted.n:
		return 0, fmt.Errorf("read %s: %d bytes arrived of %d", path, counted.n, end.Size)
	}
	return counted.n, nil
}

// Stage unpacks a tar of files and directories inside the container, where
// every run may read them, and returns the directory. The same key twice
// unpacks nothing and returns the same directory; it is lower-case hex. The
// error is no Fault when the container has no room for it.
func (s *Session) Stage(ctx context.Context, key string, tar []byte) (string, error) {
	doc, err := encode(stageDoc{Key: key})
	if err != nil {
		return "", err
	}
	h := runHeader{spec: uint32(len(doc)), code: uint32(len(tar))}
	if err := h.check(); err != nil {
		return "", err
	}
	answer, err := s.do(ctx, func(c *call) error { return s.send(c, kindStage, h, doc, tar) }, nil, nil)
	if err != nil {
		return "", err
	}
	var end stagedDoc
	if err := decode(answer, &end); err != nil {
		s.fail(err)
		return "", s.fault()
	}
	if end.Error != "" {
		return "", errors.New(end.Error)
	}
	return end.Path, nil
}

// counter keeps the first error of w, and does not trust the far side's limit.
type counter struct {
	w     io.Writer
	n     int64
	limit int64
	err   error
}

func (c *counter) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.n += int64(len(p)); c.n > c.limit {
		c.err = fmt.Errorf("larger than %d bytes", c.limit)
		return 0, c.err
	}
	_, c.err = c.w.Write(p)
	return len(p), c.err
}

// do sends a request and hands on its output until its answer is complete.
func (s *Session) do(ctx context.Context, send func(*call) error, stdout, stderr io.Writer) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	c, err := s.open()
	if err != nil {
		return nil, err
	}
	defer s.forget(c)
	defer context.AfterFunc(ctx, func() { s.cancel(c) })()
	go func() {
		if err := send(c); err != nil {
			s.fail(fmt.Errorf("%w: %w", ErrLost, err))
		}
	}()
	return s.collect(c, stdout, stderr)
}

// cancel tells the agent to end a call that it knows of, and gives the agent
// up when it does not do so in time.
func (s *Session) cancel(c *call) {
	go func() { // may block as long as the agent reads nothing
		select {
		case <-c.opened:
			_ = s.out.write(kindCancel, c.id)
		case <-c.gone:
		case <-s.done:
		}
	}()
	late := time.NewTimer(s.timing.grace)
	defer late.Stop()
	select {
	case <-c.gone:
	case <-s.done:
	case <-late.C:
		s.fail(fmt.Errorf("%w: no end %v after a cancel", ErrUnresponsive, s.timing.grace))
	}
}

// collect hands on output, gives credit for it, and returns the answer.
func (s *Session) collect(c *call, stdout, stderr io.Writer) ([]byte, error) {
	owed := 0
	for {
		select {
		case <-c.wake:
		case <-s.done:
			return nil, s.fault()
		}
		queue, ended := c.take()
		for _, p := range queue {
			w := stdout
			if p.kind == kindStderr {
				w = stderr
			}
			if w != nil {
				_, _ = w.Write(p.data) // what a sink does not want is dropped
			}
			c.consumed(len(p.data))
			owed += len(p.data)
		}
		if ended {
			return c.doc, nil
		}
		if owed >= window/4 {
			if err := s.out.write(kindCredit, c.id, binary.BigEndian.AppendUint32(nil, uint32(owed))); err != nil {
				return nil, s.fault()
			}
			owed = 0
		}
	}
}

// send writes a run, in one frame when it fits. It stops when the call is
// over, whoever ended it.
func (s *Session) send(c *call, k kind, h runHeader, parts ...[]byte) error {
	first := h.append(make([]byte, 0, runHeaderSize))
	if runHeaderSize+h.size() <= maxPayload {
		defer close(c.opened)
		return s.out.write(k, c.id, append([][]byte{first}, parts...)...)
	}
	err := s.out.write(k, c.id, first)
	close(c.opened)
	for _, p := range parts {
		for len(p) > 0 && err == nil && !c.over() {
			n := min(len(p), maxPayload)
			err = s.out.write(kindBody, c.id, p[:n])
			p = p[n:]
		}
	}
	return err
}
