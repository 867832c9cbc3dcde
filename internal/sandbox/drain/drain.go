// Package drain empties the pipes of processes that are dead.
package drain

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Reader reads from a pipe in non-blocking mode. Once a read deadline of the
// file has passed, it gives what the pipe holds at that moment and then io.EOF,
// and waits for nothing: so whoever sets the deadline when all writers are dead
// loses nothing, however slow the reader is, and neither waits for somebody
// else who has got hold of the other end nor reads what he goes on to write.
type Reader struct {
	File *os.File
	raw  func(f func(fd uintptr) bool) error // set once the deadline has passed
	left int                                 // in the pipe then, not read yet
}

func (r *Reader) Read(p []byte) (int, error) {
	if r.raw == nil {
		n, err := r.File.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		if err := r.goOn(); err != nil {
			return n, err
		}
		if n > 0 {
			return n, nil
		}
	}
	if r.left <= 0 {
		return 0, io.EOF
	}
	p = p[:min(len(p), r.left)]
	for {
		n, err := 0, error(nil)
		if rawErr := r.raw(func(fd uintptr) bool {
			n, err = unix.Read(int(fd), p)
			return true
		}); rawErr != nil {
			return 0, rawErr
		}
		switch {
		case n > 0:
			r.left -= n
			return n, nil
		case err != unix.EINTR:
			return 0, io.EOF
		}
	}
}

// goOn makes raw reads possible.
func (r *Reader) goOn() error {
	if err := r.File.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	c, err := r.File.SyscallConn()
	if err != nil {
		return err
	}
	r.raw = c.Read
	var held error
	err = c.Read(func(fd uintptr) bool {
		r.left, held = unix.IoctlGetInt(int(fd), unix.TIOCINQ) // FIONREAD
		return true
	})
	return errors.Join(err, held)
}
