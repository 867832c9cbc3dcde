package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/room"
)

// holdArg0 names the process that only holds a user namespace while the
// worker opens it.
const holdArg0 = "toolworker-hold"

// hold waits for its end.
func hold() {
	for {
		_ = unix.Pause()
	}
}

// owner is who a directory belongs to.
type owner struct{ UID, GID int }

// ownerOf gives the owner of a directory, whom no symbolic link leads to.
func ownerOf(dir string) (owner, uint32, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return owner{}, 0, &os.PathError{Op: "look at", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return owner{}, 0, &os.PathError{Op: "look at", Path: dir, Err: unix.ENOTDIR}
	}
	return owner{int(st.Uid), int(st.Gid)}, st.Mode, nil
}

// maxOwnerNamespaces bounds the descriptors that owners keep.
const maxOwnerNamespaces = 128

// owners keeps the user namespaces by which a directory's owner and a tool's
// user are mapped to each other.
type owners struct {
	spawner    *spawner
	executable string
	mu         sync.Mutex
	open       map[ownerSlot]*os.File
}

type ownerSlot struct {
	owner owner
	slot  room.Identity
}

// with calls use with a user namespace in which the owner is the slot's user.
func (o *owners) with(own owner, slot room.Identity, use func(namespace int) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := ownerSlot{own, slot}
	f, ok := o.open[key]
	if !ok {
		var err error
		if f, err = o.make(own, slot); err != nil {
			return err
		}
		if o.open == nil || len(o.open) >= maxOwnerNamespaces {
			o.closeAll()
			o.open = map[ownerSlot]*os.File{}
		}
		o.open[key] = f
	}
	return use(int(f.Fd()))
}

func (o *owners) make(own owner, slot room.Identity) (*os.File, error) {
	p, err := o.spawner.start(o.executable, holdArg0, nil, nil, &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		Pdeathsig:   unix.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: own.UID, HostID: slot.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: own.GID, HostID: slot.GID, Size: 1}},
	})
	if err != nil {
		return nil, fmt.Errorf("map owner %d to %d: %w", own.UID, slot.UID, err)
	}
	f, err := os.Open("/proc/" + strconv.Itoa(p.Pid) + "/ns/user")
	_ = p.Kill()
	_, _ = p.Wait()
	if err != nil {
		return nil, fmt.Errorf("open user namespace: %w", err)
	}
	return f, nil
}

func (o *owners) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closeAll()
}

func (o *owners) closeAll() {
	for _, f := range o.open {
		_ = f.Close()
	}
	o.open = nil
}
