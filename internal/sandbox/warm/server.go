package warm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// setupFailed is the exit status of a server that could not make a child that
// takes requests.
const setupFailed = 98

var (
	// ErrNotStarted: the code of the request did not run, so another way may
	// be tried. The server is of no use any more.
	ErrNotStarted = errors.New("warm server did not take the request")
	// ErrLost: the server ended while the code was running, and not because
	// it was told to. Its tree is dead.
	ErrLost = errors.New("warm server was ended")
)

// Process is the process tree of a server.
type Process interface {
	// Kill orders the end of the whole tree.
	Kill()
	// Wait returns the wait status of the server's process when the whole
	// tree is dead. It is called once.
	Wait() (unix.WaitStatus, error)
}

// Server is the worker's side of a fork server. Only Kill may be called from
// several goroutines at a time.
type Server struct {
	process  Process
	control  *os.File
	cancel   *os.File
	trouble  *complaints
	number   uint64
	shutdown func() (unix.WaitStatus, error)
	leaving  bool // the server ends by itself; set before shutdown
}

// Start starts a server and waits until it takes requests. launch starts its
// process with files as its descriptors, from 0 on, and does not keep them.
func Start(ctx context.Context, launch func(files []*os.File) (Process, error), prologue []byte, s *Settings) (*Server, error) {
	initial, err := s.initial(prologue)
	if err != nil {
		return nil, err
	}
	p, err := newPlumbing()
	if err != nil {
		return nil, err
	}
	process, err := launch(p.theirs)
	p.closeTheirs()
	if err != nil {
		p.closeOurs()
		return nil, fmt.Errorf("start warm server: %w", err)
	}
	srv := &Server{process: process, control: p.control, cancel: p.cancel, trouble: listen(p.complaints)}
	srv.shutdown = sync.OnceValues(srv.end)
	stop := context.AfterFunc(ctx, srv.Kill)
	defer stop()
	if err := srv.greet(p.initial, initial); err != nil {
		_, waitErr := srv.shutdown()
		return nil, fmt.Errorf("start warm server: %w%s", errors.Join(err, context.Cause(ctx), waitErr), srv.trouble)
	}
	return srv, nil
}

// greet sends what the server needs and waits for its greeting.
func (s *Server) greet(w *os.File, initial []byte) error {
	sent := make(chan error, 1)
	go func() {
		_, err := w.Write(initial)
		sent <- errors.Join(err, w.Close())
	}()
	var b [16]byte
	n, err := s.control.Read(b[:])
	if err != nil {
		s.Kill() // or the writer would wait for a reader
	}
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	if err == nil && string(b[:n]) != "ready" {
		err = fmt.Errorf("greeting %q: expected ready", b[:n])
	}
	return err
}

// Kill ends the server and everything in it at once. Close is still needed.
func (s *Server) Kill() { s.process.Kill() }

// Close ends the server and returns when its tree is dead. It is idempotent.
func (s *Server) Close() error {
	_, err := s.shutdown()
	return err
}

func (s *Server) end() (unix.WaitStatus, error) {
	if s.leaving {
		late := time.AfterFunc(farewell, s.Kill)
		defer late.Stop()
	} else {
		s.Kill()
	}
	status, err := s.process.Wait()
	_, _ = s.control.Close(), s.cancel.Close()
	s.trouble.close()
	return status, err
}

// Job is one run.
type Job struct {
	// Frame is a request of package python.
	Frame []byte
	// Output and Value are the ends that the code writes to. The caller
	// closes its own when Send returns.
	Output, Value *os.File
}

// Send gives the job to the child that waits for one. Wait must follow. Its
// error is an ErrNotStarted.
func (s *Server) Send(j *Job) error {
	s.number++
	message := make([]byte, requestHeader, requestHeader+maxInline)
	binary.LittleEndian.PutUint64(message, s.number)
	fds := []int{int(j.Output.Fd()), int(j.Value.Fd())}
	if len(j.Frame) > maxInline {
		file, err := memfile(j.Frame)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotStarted, err)
		}
		defer file.Close()
		binary.LittleEndian.PutUint64(message[8:], uint64(len(j.Frame)))
		fds = append(fds, int(file.Fd()))
	} else {
		message = append(message, j.Frame...)
	}
	raw, err := s.control.SyscallConn()
	if err == nil {
		controlErr := raw.Control(func(fd uintptr) {
			err = unix.Sendmsg(int(fd), message, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		})
		err = errors.Join(err, controlErr)
	}
	if err != nil {
		return fmt.Errorf("%w: send: %w%s", ErrNotStarted, err, s.trouble)
	}
	return nil
}

// Wait returns how the job that was sent last has ended; its tree is then
// dead. When ctx is done the run is ended, and the report says so. An error
// is ErrNotStarted or ErrLost.
func (s *Server) Wait(ctx context.Context) (*Report, error) {
	e := &ending{server: s}
	stop := context.AfterFunc(ctx, e.begin)
	var b [reportSize + 1]byte
	n, err := s.control.Read(b[:])
	stop()
	e.over()
	var report *Report
	if err == nil {
		report, err = parseReport(b[:n])
	}
	if err == nil && report.Number != s.number {
		err = fmt.Errorf("report of run %d: expected %d", report.Number, s.number)
	}
	if err == nil {
		return report, nil
	}
	return s.gone(ctx, err)
}

// farewell is how long a server that has closed its socket may take to end:
// whoever ended it sooner would not learn why it did.
const farewell = time.Second

// gone says what it means that the server has ended or lost its mind.
func (s *Server) gone(ctx context.Context, reason error) (*Report, error) {
	s.leaving = errors.Is(reason, io.EOF) || errors.Is(reason, unix.ECONNRESET)
	stop := context.AfterFunc(ctx, s.Kill)
	status, err := s.shutdown()
	stop()
	switch {
	case ctx.Err() != nil:
		return &Report{Number: s.number, Status: uint32(unix.SIGKILL), Started: true, Cancelled: true, Ended: true}, nil
	case err == nil && status.Exited() && status.ExitStatus() == setupFailed:
		return nil, fmt.Errorf("%w%s", ErrNotStarted, s.trouble)
	}
	return nil, fmt.Errorf("%w: %w%s", ErrLost, errors.Join(reason, err), s.trouble)
}

// order tells the server to end the run at hand.
func (s *Server) order() {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], s.number)
	if _, err := s.cancel.Write(b[:]); err != nil {
		s.Kill()
	}
}
