package launch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start starts the child and returns its pid once it has executed its
// program. A failure between fork and exec is an *Error and leaves no
// process behind. The caller reaps the child.
func (c *Child) Start() (int, error) {
	p, err := c.prepare()
	if err != nil {
		return 0, err
	}
	read, write, err := statusPipe(len(c.Files))
	if err != nil {
		return 0, err
	}
	defer unix.Close(read)
	p.status = uintptr(write)
	if err := p.liftFiles(c.Files); err != nil {
		unix.Close(write)
		return 0, err
	}
	defer p.closeLifted()

	// No signal may reach the child before its handlers, which are those of
	// the Go runtime, are gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		unix.Close(write)
		return 0, fmt.Errorf("block signals: %w", err)
	}
	pid, errno := fork(p)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
	runtime.KeepAlive(p)
	unix.Close(write)
	if errno != 0 {
		return 0, &Error{Step: "fork", Errno: errno}
	}
	if err := readStatus(read); err != nil {
		_, _ = unix.Wait4(pid, nil, 0, nil)
		return 0, err
	}
	return pid, nil
}

// statusPipe makes a pipe whose write end lies above the first n descriptors.
func statusPipe(n int) (read, write int, err error) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return 0, 0, fmt.Errorf("make status pipe: %w", err)
	}
	write, err = unix.FcntlInt(uintptr(p[1]), unix.F_DUPFD_CLOEXEC, n)
	unix.Close(p[1])
	if err != nil {
		unix.Close(p[0])
		return 0, 0, fmt.Errorf("copy status pipe: %w", err)
	}
	return p[0], write, nil
}

// readStatus waits for the exec, which closes the pipe, or for the step that
// failed.
func readStatus(fd int) error {
	var b [8]byte
	n, err := io.ReadFull(fdReader(fd), b[:])
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return fmt.Errorf("read status of the start (%d bytes): %w", n, err)
	}
	s := step(binary.NativeEndian.Uint32(b[:4]))
	return &Error{Step: s.String(), Errno: syscall.Errno(binary.NativeEndian.Uint32(b[4:]))}
}

type fdReader int

func (r fdReader) Read(p []byte) (int, error) {
	for {
		n, err := unix.Read(int(r), p)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// program is a Child in the form that needs no memory, no locks and no
// growing stack to run.
type program struct {
	status   uintptr
	paths    []*byte
	argv     []*byte
	env      []*byte
	dir      *byte
	files    []uintptr
	groups   []uintptr
	zero     []byte
	uid, gid int
	caps     bool
	nnp      bool
	ruleset  int
	filter   unix.SockFprog
	limits   []kernelLimit
	oom      *byte
	oomScore []byte
}

type kernelLimit struct {
	resource uintptr
	value    unix.Rlimit
}

func (c *Child) prepare() (*program, error) {
	names, err := c.candidates()
	if err != nil {
		return nil, err
	}
	p := &program{uid: c.UID, gid: c.GID, caps: c.DropCaps, ruleset: c.Ruleset}
	p.nnp = c.NoNewPrivs || c.Ruleset >= 0 || len(c.Filter) > 0
	for _, n := range names {
		b, err := syscall.BytePtrFromString(n)
		if err != nil {
			return nil, fmt.Errorf("command %q: holds a NUL", n)
		}
		p.paths = append(p.paths, b)
	}
	if p.argv, err = syscall.SlicePtrFromStrings(c.Argv); err != nil {
		return nil, fmt.Errorf("arguments: one holds a NUL")
	}
	if p.env, err = syscall.SlicePtrFromStrings(c.Env); err != nil {
		return nil, fmt.Errorf("environment: a member holds a NUL")
	}
	if c.Dir != "" {
		if p.dir, err = syscall.BytePtrFromString(c.Dir); err != nil {
			return nil, fmt.Errorf("working directory %q: holds a NUL", c.Dir)
		}
	}
	if len(c.Filter) > 0 {
		p.filter = unix.SockFprog{Len: uint16(len(c.Filter)), Filter: &c.Filter[0]}
	}
	p.zero = []byte("0")
	for _, fd := range c.Groups {
		p.groups = append(p.groups, uintptr(fd))
	}
	for _, l := range c.Limits {
		p.limits = append(p.limits, kernelLimit{uintptr(l.Resource), unix.Rlimit{Cur: l.Soft, Max: l.Hard}})
	}
	if c.OOMFirst {
		p.oom, _ = syscall.BytePtrFromString("/proc/self/oom_score_adj")
		p.oomScore = []byte("1000")
	}
	return p, nil
}

// liftFiles copies the files above the descriptors that they will become, so
// that moving one never overwrites another.
func (p *program) liftFiles(files []int) error {
	for _, f := range files {
		fd, err := unix.FcntlInt(uintptr(f), unix.F_DUPFD_CLOEXEC, len(files))
		if err != nil {
			p.closeLifted()
			return fmt.Errorf("copy descriptor %d: %w", f, err)
		}
		p.files = append(p.files, uintptr(fd))
	}
	return nil
}

func (p *program) closeLifted() {
	for _, fd := range p.files {
		unix.Close(int(fd))
	}
	p.files = nil
}
