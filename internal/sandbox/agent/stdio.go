package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/drain"
)

// pipeRoom is what a pipe takes without a reader.
const pipeRoom = 64 << 10

var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// stdio are the pipes of a command: ours and its own ends of them.
type stdio struct {
	theirs []*os.File
	ours   []*os.File
	work   sync.WaitGroup
}

// openStdio opens the pipes and starts to feed and to drain them.
func openStdio(s *sandbox.Spec) (*stdio, error) {
	st := &stdio{}
	err := st.feed(s.Input)
	for _, w := range []io.Writer{s.Stdout, s.Stderr} {
		if err == nil {
			err = st.drain(w)
		}
	}
	if err != nil {
		st.closeTool()
		st.finish()
		return nil, err
	}
	return st, nil
}

func (st *stdio) pipe(own int) (*os.File, error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	_ = unix.SetNonblock(p[own], true) // so that it can have deadlines
	ours := os.NewFile(uintptr(p[own]), "pipe")
	st.ours = append(st.ours, ours)
	st.theirs = append(st.theirs, os.NewFile(uintptr(p[1-own]), "pipe"))
	return ours, nil
}

func (st *stdio) feed(input []byte) error {
	w, err := st.pipe(1)
	if err != nil {
		return err
	}
	if len(input) <= pipeRoom {
		_, err := w.Write(input)
		return errors.Join(err, w.Close())
	}
	st.work.Go(func() {
		_, _ = w.Write(input) // a command need not read its input
		_ = w.Close()
	})
	return nil
}

func (st *stdio) drain(to io.Writer) error {
	end, err := st.pipe(0)
	if err != nil {
		return err
	}
	r := &drain.Reader{File: end}
	st.work.Go(func() {
		buf := buffers.Get().(*[32 << 10]byte)
		defer buffers.Put(buf)
		for {
			n, err := r.Read(buf[:])
			if n > 0 && to != nil {
				_, _ = to.Write(buf[:n])
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

func (st *stdio) tool() []int {
	fds := make([]int, len(st.theirs))
	for i, f := range st.theirs {
		fds[i] = int(f.Fd())
	}
	return fds
}

func (st *stdio) closeTool() {
	for _, f := range st.theirs {
		_ = f.Close()
	}
}

// finish is called when nothing of the run lives any more.
func (st *stdio) finish() {
	for _, f := range st.ours {
		_ = f.SetDeadline(time.Now())
	}
	st.work.Wait()
	for _, f := range st.ours {
		_ = f.Close()
	}
}
