// Package landlock makes Landlock rulesets: what a process may still do with
// the file system, with TCP and to processes outside of its domain, whoever
// it is.
package landlock

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rules is what is allowed. Everything else that the kernel's Landlock knows
// of is denied; it does not know of stat, chmod, chown, utime and extended
// attributes, nor of connecting to sockets that have a path.
type Rules struct {
	// Read are directories or files below which all may be read and executed.
	// What does not exist is left out.
	Read []string
	// Write are directories below which all may be done but making devices.
	Write []string
	// Devices are files that may be read and written; left out when missing.
	Devices []string
	// NoTCP denies connecting and binding, from ABI 4 on.
	NoTCP bool
}

// Rights of the file system by the ABI that brought them.
const (
	abi1 = 1<<13 - 1
	read = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// ofFiles are the rights that a rule for a file may hold.
	ofFiles = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	never  = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	device = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
)

// ABI is the version of the kernel's Landlock, 0 when it has none.
func ABI() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// ScopesABI is the first version that keeps signals and abstract sockets
// within the domain.
const ScopesABI = 6

// handled is everything that this version can deny.
func handled(abi int, noTCP bool) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: abi1}
	if abi >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 && noTCP {
		a.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= ScopesABI {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// Ruleset gives a ruleset for landlock_restrict_self. It refers to the files
// that the paths name now. The caller closes it.
func (r *Rules) Ruleset() (int, error) {
	abi := ABI()
	if abi == 0 {
		return -1, fmt.Errorf("make Landlock ruleset: %w", unix.ENOSYS)
	}
	attr := handled(abi, r.NoTCP)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return -1, fmt.Errorf("make Landlock ruleset: %w", errno)
	}
	set := ruleset{int(fd), attr.Handled_access_fs}
	if err := r.fill(set); err != nil {
		unix.Close(set.fd)
		return -1, err
	}
	return set.fd, nil
}

func (r *Rules) fill(set ruleset) error {
	for _, p := range r.Read {
		if err := set.allow(p, read, true); err != nil {
			return err
		}
	}
	for _, p := range r.Write {
		if err := set.allow(p, ^uint64(never), false); err != nil {
			return err
		}
	}
	for _, p := range r.Devices {
		if err := set.allow(p, device, true); err != nil {
			return err
		}
	}
	return nil
}

type ruleset struct {
	fd      int
	handled uint64
}

func (s ruleset) allow(path string, access uint64, optional bool) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT && optional {
		return nil
	}
	if err != nil {
		return &os.PathError{Op: "open for Landlock rule", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "look at", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		access &= ofFiles
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access & s.handled, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return &os.PathError{Op: "add Landlock rule for", Path: path, Err: errno}
	}
	return nil
}
