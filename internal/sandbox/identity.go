package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/room"
)

// Host users of tools when the worker may map any: one for each tool that
// runs at a time, out of a range that Linux distributions and container
// managers leave alone. Where the worker's own user namespace has no such
// users, the last ones that it has are taken.
const (
	firstSlotID = 1_879_100_000
	slotIDs     = 1024
)

// identities hands out who a tool is on the host.
type identities struct {
	privileged bool
	first      int // slots are first to first + slotIDs - 1
	mu         sync.Mutex
	taken      map[int]bool
}

func newIdentities() *identities {
	i := &identities{taken: map[int]bool{}, privileged: os.Geteuid() == 0 && capable(unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID)}
	if i.privileged {
		i.first, i.privileged = firstSlot("/proc/self/uid_map")
	}
	return i
}

// own is the worker's user, the only one that may be used without privileges.
func (i *identities) own() room.Identity {
	return room.Identity{UID: os.Geteuid(), GID: os.Getegid(), Privileged: i.privileged}
}

// take gives a slot that no other tool has; give returns it.
func (i *identities) take() (room.Identity, error) {
	if !i.privileged {
		return i.own(), nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	for n := range slotIDs {
		if id := i.first + n; !i.taken[id] {
			i.taken[id] = true
			return room.Identity{UID: id, GID: id, Privileged: true}, nil
		}
	}
	return room.Identity{}, fmt.Errorf("all %d users for tools are taken", slotIDs)
}

func (i *identities) give(id room.Identity) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.taken, id.UID)
}

// firstSlot is the first of the users for tools, of those that the worker's
// user namespace maps; it maps too few when it was made for one user only.
func firstSlot(mapFile string) (first int, ok bool) {
	f, err := os.Open(mapFile)
	if err != nil {
		return firstSlotID, true
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var inside, outside, count int
		if n, _ := fmt.Sscan(lines.Text(), &inside, &outside, &count); n != 3 {
			continue
		}
		last := inside + count
		if inside <= firstSlotID && last >= firstSlotID+slotIDs {
			return firstSlotID, true
		}
		// 65534 is nobody, whom files of unmapped users seem to belong to.
		if last > 65534 && last <= 65536 {
			last = 65534
		}
		if count > 2*slotIDs {
			first, ok = last-slotIDs, true
		}
	}
	return first, ok
}

// capable reports whether the process has all of the capabilities.
func capable(caps ...uint) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	for _, c := range caps {
		if data[c/32].Effective&(1<<(c%32)) == 0 {
			return false
		}
	}
	return true
}
