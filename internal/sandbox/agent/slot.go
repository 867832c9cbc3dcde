package agent

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/launch"
	"github.com/toolworker/toolworker/internal/sandbox/removal"
	"github.com/toolworker/toolworker/internal/tool"
)

// A slot is a process of this binary that starts commands, one after the
// other and one at a time. To start this binary costs more than most commands
// take; a fork of a slot costs a fraction of that. The slot is the subreaper of
// what it starts and runs nothing itself: each command confines itself
// between fork and exec, and its whole tree is dead before the slot answers.
//
// Agent and slot speak in the frames of a session over one socket; the
// descriptors of a command travel over another.

// slotArg0 is the name under which the agent executes itself as a slot.
const slotArg0 = "toolworker-slot"

const slotRightsFD = 3

// slotJob is one command.
type slotJob struct {
	Argv   []string       `json:"argv"`
	Env    []string       `json:"env"`
	Dir    string         `json:"dir"`
	Limits []launch.Limit `json:"limits"`
	PIDs   int64          `json:"pids,omitzero"` // most processes and threads at a time, 0: any number
	// What the command may touch.
	Confine confinement `json:"confine"`
}

// slotExit is how the tree of a command ended, or the step that kept it from starting.
type slotExit struct {
	Step   string    `json:"step,omitzero"`
	Errno  int       `json:"errno,omitzero"`
	Status uint32    `json:"status"` // wait status of the command itself
	Hit    tool.Code `json:"hit,omitzero"`
	CPUNS  int64     `json:"cpu_ns"`
	MaxRSS int64     `json:"max_rss"` // bytes, of the largest process
	PIDs   int64     `json:"pids,omitzero"`
}

// slot is the agent's side of one slot process.
type slot struct {
	process *os.Process
	in      *frameReader
	out     *frameWriter
	conn    *os.File
	rights  int
	last    uint32
	idle    time.Time // since when
	tmp     string    // for temporary files of its commands, "" when there is no room
}

// startSlot starts a slot that ends with this process.
func startSlot(executable string) (*slot, error) {
	frames, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make socket of a slot: %w", err)
	}
	rights, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make socket of a slot: %w", err), unix.Close(frames[0]), unix.Close(frames[1]))
	}
	theirs, theirRights := os.NewFile(uintptr(frames[1]), "frames"), os.NewFile(uintptr(rights[1]), "rights")
	defer theirs.Close()
	defer theirRights.Close()
	_ = unix.SetNonblock(frames[0], true) // so that a close ends a read
	s := &slot{conn: os.NewFile(uintptr(frames[0]), "slot"), rights: rights[0]}
	s.in, s.out = newFrameReader(s.conn), newFrameWriter(s.conn)
	s.process, err = os.StartProcess(executable, []string{slotArg0}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=50"},
		Files: []*os.File{theirs, theirs, os.Stderr, theirRights},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		s.closeFiles()
		return nil, fmt.Errorf("start a slot: %w", err)
	}
	return s, nil
}

func (s *slot) closeFiles() {
	_ = s.conn.Close()
	_ = unix.Close(s.rights)
}

// start hands a command and its descriptors to the slot.
func (s *slot) start(j *slotJob, files []int) error {
	s.last++
	if err := unix.Sendmsg(s.rights, []byte{0}, unix.UnixRights(files...), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("send descriptors to a slot: %w", err)
	}
	doc, err := encode(j)
	if err != nil {
		return err
	}
	return s.out.writePieces(kindRun, s.last, doc)
}

// kill orders the end of the tree that runs; wait then returns.
func (s *slot) kill() { _ = s.out.write(kindCancel, s.last) }

// wait returns how the command that was started last has ended. An error
// means that the slot is gone or has lost its mind.
func (s *slot) wait() (*slotExit, error) {
	doc, err := readPieces(s.in, kindExit, s.last, maxExit)
	if err != nil {
		return nil, err
	}
	var x slotExit
	return &x, decode(doc, &x)
}

// end ends the slot and waits until it is gone.
func (s *slot) end() {
	s.closeFiles()
	timer := time.AfterFunc(closeGrace, func() { _ = s.process.Kill() })
	defer timer.Stop()
	_, _ = s.process.Wait()
	if s.tmp != "" {
		removal.Tree(s.tmp)
	}
}

// clean empties the directory for temporary files. It stays the same
// directory as long as nobody has put anything into it.
func (s *slot) clean() {
	if s.tmp == "" || isEmpty(s.tmp) {
		return
	}
	removal.Tree(s.tmp)
	if os.Mkdir(s.tmp, 0o700) != nil {
		s.tmp = ""
	}
}

func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&0o777 != 0o700 {
		return false
	}
	names, _ := f.Readdirnames(1)
	return len(names) == 0
}

// readPieces reads a document that writePieces sent.
func readPieces(r *frameReader, k kind, id uint32, limit int) ([]byte, error) {
	var doc []byte
	for {
		f, err := r.next()
		if err != nil {
			return nil, err
		}
		if f.kind != k || f.id != id || len(f.payload) == 0 || len(doc)+len(f.payload) > limit {
			return nil, fmt.Errorf("%w: frame of kind %d, run %d: expected kind %d, run %d", errProtocol, f.kind, f.id, k, id)
		}
		doc = append(doc, f.payload[1:]...)
		if f.payload[0] == 0 {
			return doc, nil
		}
	}
}
