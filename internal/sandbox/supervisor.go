package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/shim"
)

const (
	// setupTimeout bounds the way from the clone to the tool's exec.
	setupTimeout = 20 * time.Second
	// killTimeout bounds how long a supervisor may take to end its tree.
	killTimeout = 5 * time.Second
)

// shimEnv keeps a supervisor small: it lives as long as one run and holds next
// to nothing.
var shimEnv = []string{"GOMAXPROCS=2", "GOGC=off"}

// supervisor is the worker's side of one shim.
type supervisor struct {
	process *os.Process
	control *os.File
	// reports has what the shim says, at most two of them, and is closed when
	// nothing more can come.
	reports chan *frame.Report
	// garbage is why the reports ended early; set before they are closed.
	garbage error
	// init: the shim is the init of a pid namespace, whose death is its tree's.
	init bool
	// tidying are those whose tree is dead and who still remove its files.
	tidying *sync.WaitGroup
}

// startSupervisor starts a shim that has the tool's descriptors and waits for
// its set-up.
func (r *runner) startSupervisor(files []*os.File, attr *syscall.SysProcAttr) (*supervisor, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make control socket: %w", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return nil, fmt.Errorf("set control socket non-blocking: %w", err)
	}
	sup := &supervisor{control: os.NewFile(uintptr(pair[0]), "control"), reports: make(chan *frame.Report, 2), tidying: &r.running}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		_ = sup.control.Close()
		return nil, fmt.Errorf("open null device: %w", err)
	}
	defer null.Close()
	all := append([]*os.File{null, null, os.Stderr, theirs}, files...)
	if sup.init = attr.Cloneflags&syscall.CLONE_NEWPID != 0; sup.init {
		// Its tree dies with it. One that is no init has to outlive the worker
		// until it has ended its tree; it sees the control socket close.
		attr.Pdeathsig = syscall.SIGKILL
	}
	sup.process, err = r.spawner.start(r.config.Executable, shim.Arg0, shimEnv, all, attr)
	if err != nil {
		_ = sup.control.Close()
		return nil, err
	}
	go sup.listen()
	return sup, nil
}

// listen takes the reports of a shim: started or failed, then exited. Whatever
// else it says ends the conversation.
func (s *supervisor) listen() {
	defer close(s.reports)
	for _, expected := range [][2]frame.Kind{{frame.Started, frame.Failed}, {frame.Exited, frame.Exited}} {
		rep, err := frame.ReadReport(s.control)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.garbage = err
			}
			return
		}
		if rep.Kind != expected[0] && rep.Kind != expected[1] {
			s.garbage = fmt.Errorf("report %q: out of turn", rep.Kind)
			return
		}
		s.reports <- rep
	}
}

// kill orders the end of the tree; end waits for it.
func (s *supervisor) kill() {
	if s.init {
		_ = s.process.Kill()
		return
	}
	if err := frame.WriteKill(s.control); err != nil {
		_ = s.process.Kill()
	}
}

// end waits until the shim is gone, and with it its tree. What it used,
// itself included, is in the state.
func (s *supervisor) end() (*os.ProcessState, error) {
	late := time.AfterFunc(killTimeout, func() { _ = s.process.Kill() })
	defer late.Stop()
	state, err := s.process.Wait()
	_ = s.control.Close()
	if err != nil {
		return nil, fmt.Errorf("wait for sandbox supervisor: %w", err)
	}
	return state, nil
}

// leave is end for a shim that is no init and has reported the end of its
// tree: nobody needs to wait until it has removed what the tool left behind,
// which may be a million files.
func (s *supervisor) leave() {
	s.tidying.Go(func() {
		_, _ = s.process.Wait()
		_ = s.control.Close()
	})
}
