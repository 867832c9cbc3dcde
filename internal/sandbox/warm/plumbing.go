package warm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	requestHeader = 16
	// maxInline bounds a frame that travels in the message itself; the server
	// reads 36 KiB at once.
	maxInline = 32 << 10
)

// plumbing are the descriptors between the worker and a server.
type plumbing struct {
	theirs                               []*os.File // in the order of their numbers
	initial, complaints, control, cancel *os.File
}

func newPlumbing() (p *plumbing, err error) {
	p = &plumbing{}
	defer func() {
		if err != nil {
			p.closeTheirs()
			p.closeOurs()
			p, err = nil, fmt.Errorf("open descriptors of a warm server: %w", err)
		}
	}()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, null)
	var w, r *os.File
	if p.complaints, w, err = os.Pipe(); err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, w, w)
	if r, p.initial, err = os.Pipe(); err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, r)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, os.NewFile(uintptr(pair[1]), "control"))
	err = unix.SetNonblock(pair[0], true) // so that a close ends a read
	p.control = os.NewFile(uintptr(pair[0]), "control")
	if err != nil {
		return p, err
	}
	if r, p.cancel, err = os.Pipe(); err != nil {
		return p, err
	}
	p.theirs = append(p.theirs, r)
	return p, nil
}

func (p *plumbing) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close() // one stands there twice
	}
}

func (p *plumbing) closeOurs() {
	for _, f := range []*os.File{p.initial, p.complaints, p.control, p.cancel} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// memfile is a file in memory that holds b, at its beginning.
func memfile(b []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("request", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make request file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "request")
	_, err = f.Write(b)
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		return nil, fmt.Errorf("write request file: %w", errors.Join(err, f.Close()))
	}
	return f, nil
}
