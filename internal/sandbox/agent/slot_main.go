package agent

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/launch"
)

// slotMain is the slot process. It returns when the agent is gone.
func slotMain() error {
	if err := unix.CloseRange(slotRightsFD+1, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	unix.CloseOnExec(slotRightsFD)
	if err := errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0),
	); err != nil {
		return fmt.Errorf("prepare slot: %w", err)
	}
	m := &slotProcess{out: newFrameWriter(os.Stdout), jobs: make(chan numberedJob)}
	go m.listen(newFrameReader(os.Stdin))
	for j := range m.jobs {
		x := m.run(j)
		doc, err := encode(x)
		if err == nil {
			err = m.out.writePieces(kindExit, j.id, doc)
		}
		if err != nil {
			return err
		}
	}
	killTree()
	return nil
}

type numberedJob struct {
	id uint32
	slotJob
}

type slotProcess struct {
	out      *frameWriter
	jobs     chan numberedJob
	rulesets rulesets

	mu     sync.Mutex
	at     uint32 // the run that was taken last
	ended  uint32 // the run that was ordered to end last; a late order hits nothing
	pidfd  int    // of the command that runs, -1 when none does
	closed bool
}

// listen takes jobs and orders until the agent is gone.
func (m *slotProcess) listen(r *frameReader) {
	defer close(m.jobs)
	var doc []byte
	for {
		f, err := r.next()
		if err != nil {
			m.stop(m.at, true)
			return
		}
		switch {
		case f.kind == kindCancel:
			m.stop(f.id, false)
		case f.kind == kindRun && len(f.payload) > 0:
			doc = append(doc, f.payload[1:]...)
			if f.payload[0] == 1 {
				continue
			}
			j := numberedJob{id: f.id}
			if err := decode(doc, &j.slotJob); err != nil {
				return
			}
			doc = doc[:0]
			m.jobs <- j
		}
	}
}

func (m *slotProcess) stop(id uint32, closing bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = id
	m.closed = m.closed || closing
	if m.pidfd >= 0 && (m.at == id || m.closed) {
		_ = unix.PidfdSendSignal(m.pidfd, unix.SIGKILL, nil, 0)
	}
}

// running notes the command that stop is to end; it may be too late already.
func (m *slotProcess) running(id uint32, pidfd int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at, m.pidfd = id, pidfd
	if pidfd >= 0 && (m.ended == id || m.closed) {
		_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	}
}

// run runs one command to the end of its tree.
func (m *slotProcess) run(j numberedJob) *slotExit {
	files, err := receiveFiles()
	if err != nil {
		return notStarted("receive descriptors", err)
	}
	ruleset, err := m.rulesets.get(&j.Confine)
	if err != nil {
		closeAll(files)
		return notStarted("confine", err)
	}
	child := launch.Child{
		Argv: j.Argv, Env: j.Env, Dir: j.Dir, Files: files, UID: -1, GID: -1,
		NoNewPrivs: true, Ruleset: ruleset, Filter: j.Confine.filter(), Limits: j.Limits, OOMFirst: true,
	}
	pid, err := child.Start()
	closeAll(files)
	if err != nil {
		return notStarted("start", err)
	}
	pidfd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		killTree()
		return notStarted("open process", err)
	}
	m.running(j.id, pidfd)
	census := startCensus(j.PIDs, func() { _ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0) })
	process := os.NewFile(uintptr(pidfd), "process")
	awaitEnd(process)
	x := reap(pid)
	x.PIDs, x.Hit = census.stop()
	m.running(j.id, -1)
	_ = process.Close()
	x.add(killTree())
	return x
}

// awaitEnd waits for the end of a process without holding a thread. Where
// that is not possible it returns at once, and reap waits.
func awaitEnd(process *os.File) {
	c, err := process.SyscallConn()
	if err != nil {
		return
	}
	_ = c.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

func notStarted(step string, err error) *slotExit {
	x := &slotExit{Step: step + ": " + err.Error()}
	var start *launch.Error
	if errors.As(err, &start) {
		x.Step, x.Errno = start.Step, int(start.Errno)
	}
	return x
}

func (x *slotExit) add(u usage) {
	x.CPUNS += u.cpu.Nanoseconds()
	x.MaxRSS = max(x.MaxRSS, u.rss)
}

// reap reaps until the command itself has ended, whatever else ends before.
func reap(pid int) *slotExit {
	x := &slotExit{}
	for {
		var status syscall.WaitStatus
		var ru syscall.Rusage
		p, err := syscall.Wait4(-1, &status, 0, &ru)
		if err == syscall.EINTR {
			continue
		}
		if err != nil { // cannot be: nobody else reaps
			return notStarted("wait for command", err)
		}
		x.add(usageOf(&ru))
		if p == pid {
			x.Status = uint32(status)
			return x
		}
	}
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// receiveFiles takes the three descriptors of the next command.
func receiveFiles() ([]int, error) {
	buf, oob := make([]byte, 1), make([]byte, unix.CmsgSpace(3*4))
	for {
		_, n, flags, _, err := unix.Recvmsg(slotRightsFD, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		messages, err := unix.ParseSocketControlMessage(oob[:n])
		if err != nil || len(messages) != 1 || flags&unix.MSG_CTRUNC != 0 {
			return nil, fmt.Errorf("%w: no descriptors", errProtocol)
		}
		fds, err := unix.ParseUnixRights(&messages[0])
		if err == nil && len(fds) != 3 {
			closeAll(fds)
			err = fmt.Errorf("%w: %d descriptors", errProtocol, len(fds))
		}
		return fds, err
	}
}

type usage struct {
	cpu time.Duration
	rss int64
}

func usageOf(ru *syscall.Rusage) usage {
	return usage{cpu: time.Duration(ru.Utime.Nano() + ru.Stime.Nano()), rss: ru.Maxrss << 10}
}
