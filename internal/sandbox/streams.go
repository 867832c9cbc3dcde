package sandbox

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/drain"
	"github.com/toolworker/toolworker/internal/sandbox/python"
)

// streams are the pipes between the worker and one tool: what the tool gets,
// in the order of its descriptors, and what runs at the worker's ends.
type streams struct {
	tool   []*os.File // the tool's ends
	ends   []*os.File // the worker's ends
	work   sync.WaitGroup
	value  []byte
	reason string
	limit  string // what the code says that it ran into
}

// newStreams opens the pipes of a command or of inline code and starts to feed
// and to drain them.
func newStreams(s *Spec, py *python.Interpreter) (*streams, error) {
	st := &streams{}
	if err := st.open(s, py); err != nil {
		st.closeTool()
		st.abandon()
		return nil, err
	}
	return st, nil
}

func (st *streams) open(s *Spec, py *python.Interpreter) error {
	if len(s.Argv) > 0 {
		if err := st.feed(s.Input); err != nil {
			return err
		}
		if err := st.drain(s.Stdout); err != nil {
			return err
		}
		return st.drain(s.Stderr)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open null device: %w", err)
	}
	st.tool = append(st.tool, null)
	if err := st.drain(s.Stdout); err != nil {
		return err
	}
	st.tool = append(st.tool, st.tool[1]) // one pipe for both keeps the order
	request := python.Request{Name: s.Name, Code: s.Code, Input: s.Input}
	frame, err := request.Frame()
	if err != nil {
		return err
	}
	if err := st.feed(py.Cold.Prologue, frame); err != nil {
		return err
	}
	return st.collect()
}

// collect gives the tool a pipe for the value.
func (st *streams) collect() error {
	r, err := st.output()
	if err != nil {
		return err
	}
	st.read(r)
	return nil
}

// read takes the value from the worker's end of its pipe.
func (st *streams) read(end *os.File) {
	st.work.Go(func() {
		said, err := python.Read(&drain.Reader{File: end}, 0)
		if err != nil && said.Value == nil && said.Reason == "" {
			said.Reason = "result was cut off"
		}
		st.value, st.reason, st.limit = said.Value, said.Reason, said.Limit
	})
}

// feed gives the tool a pipe from which data comes.
func (st *streams) feed(data ...[]byte) error {
	r, w, err := pipe(true)
	if err != nil {
		return err
	}
	st.tool, st.ends = append(st.tool, r), append(st.ends, w)
	st.work.Go(func() {
		for _, d := range data {
			if _, err := w.Write(d); err != nil {
				break // a tool need not read its input
			}
		}
		_ = w.Close()
	})
	return nil
}

// drain gives the tool a pipe that is read to its end whatever w makes of it.
func (st *streams) drain(w io.Writer) error {
	r, err := st.output()
	if err != nil {
		return err
	}
	st.copy(w, r)
	return nil
}

// copy gives w what comes from the worker's end of a pipe.
func (st *streams) copy(w io.Writer, end *os.File) {
	r := &drain.Reader{File: end}
	st.work.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			n, err := r.Read(buf)
			if n > 0 && w != nil {
				_, _ = w.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	})
}

func (st *streams) output() (*os.File, error) {
	r, w, err := pipe(false)
	if err != nil {
		return nil, err
	}
	st.tool, st.ends = append(st.tool, w), append(st.ends, r)
	return r, nil
}

// pipe makes a pipe of which the worker's end, the one that feeds or the one
// that reads, takes part in polling and the tool's blocks, as programs expect.
func pipe(feed bool) (r, w *os.File, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make pipe: %w", err)
	}
	own := p[0]
	if feed {
		own = p[1]
	}
	if err := unix.SetNonblock(own, true); err != nil {
		return nil, nil, fmt.Errorf("set pipe non-blocking: %w", err)
	}
	return os.NewFile(uintptr(p[0]), "pipe"), os.NewFile(uintptr(p[1]), "pipe"), nil
}

// closeTool closes the tool's ends, once the tool has them or never will.
func (st *streams) closeTool() {
	for _, f := range st.tool {
		_ = f.Close() // one may stand there twice
	}
	st.tool = nil
}

// finish is called when the tool and all that it started are dead: it stops
// the feeding, lets the draining come to its end and gives what was sent as
// the value.
func (st *streams) finish() (value []byte, reason string) {
	for _, f := range st.ends {
		_ = f.SetDeadline(time.Now())
	}
	st.work.Wait()
	for _, f := range st.ends {
		_ = f.Close()
	}
	return st.value, st.reason
}

// abandon is finish for a tool that was never started.
func (st *streams) abandon() {
	for _, f := range st.ends {
		_ = f.Close()
	}
	st.work.Wait()
}
