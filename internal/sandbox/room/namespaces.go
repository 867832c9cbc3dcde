package room

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Identity is who the one user of the room is on the host.
type Identity struct {
	UID, GID int
	// Privileged: the caller may map users other than itself, and drop groups.
	Privileged bool
}

// Namespaces starts a process as the first one of new user, mount, pid, ipc,
// uts, cgroup and, unless the host's network is shared, net namespaces. It has
// the room's UID and GID and, for as long as it builds the room, the
// capabilities that this takes.
func Namespaces(id Identity, network bool) *syscall.SysProcAttr {
	flags := unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if !network {
		flags |= unix.CLONE_NEWNET
	}
	return &syscall.SysProcAttr{
		Cloneflags:  uintptr(flags),
		UidMappings: []syscall.SysProcIDMap{{ContainerID: UID, HostID: id.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: GID, HostID: id.GID, Size: 1}},
		// Without privileges the kernel wants setgroups denied; then the
		// worker's supplementary groups stay with the room.
		GidMappingsEnableSetgroups: id.Privileged,
		Credential:                 &syscall.Credential{Uid: UID, Gid: GID, NoSetGroups: !id.Privileged},
		AmbientCaps: []uintptr{
			unix.CAP_SYS_ADMIN,    // mount, pivot_root, sethostname
			unix.CAP_SETPCAP,      // to drop the bounding set
			unix.CAP_DAC_OVERRIDE, // to find protected paths in a project of mode 0700
			unix.CAP_SYS_PTRACE,   // to see the room's processes through hidepid
		},
	}
}
