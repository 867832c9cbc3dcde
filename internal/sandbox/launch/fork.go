package launch

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is a part of the way from fork to exec, reported when it fails.
type step uint32

const (
	stepJoin step = iota + 1
	stepSession
	stepParent
	stepDir
	stepFiles
	stepLimits
	stepGroups
	stepGroup
	stepUser
	stepCaps
	stepNoNewPrivs
	stepLandlock
	stepSignals
	stepSeccomp
	stepExec
)

// StepExec is the Step of an Error that means that the program itself could
// not be executed.
const StepExec = "exec"

func (s step) String() string {
	switch s {
	case stepJoin:
		return "join control group"
	case stepSession:
		return "start session"
	case stepParent:
		return "bind to parent"
	case stepDir:
		return "change directory"
	case stepFiles:
		return "place descriptors"
	case stepLimits:
		return "set limits"
	case stepGroups:
		return "drop groups"
	case stepGroup:
		return "switch group"
	case stepUser:
		return "switch user"
	case stepCaps:
		return "drop capabilities"
	case stepNoNewPrivs:
		return "set no_new_privs"
	case stepLandlock:
		return "enter Landlock domain"
	case stepSignals:
		return "reset signals"
	case stepSeccomp:
		return "install system call filter"
	case stepExec:
		return StepExec
	}
	return "start"
}

// fork forks and, in the child, becomes the program. All signals are blocked
// and the caller's thread is locked. In the child this frame is the only one
// that runs: one thread of a process that had many, so there are no locks to
// take, no memory to allocate, no stack to grow. Of the Go world only what
// compiles to straight-line code and raw system calls may stand here.
//
//go:norace
//go:noinline
//go:nosplit
func fork(p *program) (int, syscall.Errno) {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || pid != 0 {
		return int(pid), errno
	}
	at := become(p)
	status := [2]uint32{uint32(at.step), uint32(at.errno)}
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, p.status, uintptr(unsafe.Pointer(&status)), unsafe.Sizeof(status))
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

type failure struct {
	step  step
	errno syscall.Errno
}

// become runs in the child and returns only when a step failed.
//
//go:norace
//go:noinline
//go:nosplit
func become(p *program) failure {
	if at := settle(p); at.errno != 0 {
		return at
	}
	if at := renounce(p); at.errno != 0 {
		return at
	}
	// Like execvp: a file that is not there is no answer yet, one that may
	// not be executed is remembered.
	last := syscall.ENOENT
	for _, path := range p.paths {
		_, _, errno := syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
			uintptr(unsafe.Pointer(unsafe.SliceData(p.argv))), uintptr(unsafe.Pointer(unsafe.SliceData(p.env))))
		if errno == syscall.EACCES {
			last = errno
			continue
		}
		if errno != syscall.ENOENT && errno != syscall.ENOTDIR {
			return failure{stepExec, errno}
		}
	}
	return failure{stepExec, last}
}

// settle arranges what needs the parent's rights.
//
//go:norace
//go:noinline
//go:nosplit
func settle(p *program) failure {
	// First: everything that follows is charged to the group.
	for i := range p.groups {
		if _, _, errno := syscall.RawSyscall(unix.SYS_WRITE, p.groups[i], uintptr(unsafe.Pointer(unsafe.SliceData(p.zero))), 1); errno != 0 {
			return failure{stepJoin, errno}
		}
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); errno != 0 {
		return failure{stepSession, errno}
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); errno != 0 {
		return failure{stepParent, errno}
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_UMASK, 0o022, 0, 0)
	for i := range p.files {
		if _, _, errno := syscall.RawSyscall(unix.SYS_DUP3, p.files[i], uintptr(i), 0); errno != 0 {
			return failure{stepFiles, errno}
		}
	}
	if _, _, errno := syscall.RawSyscall(unix.SYS_CLOSE_RANGE, uintptr(len(p.files)), 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); errno != 0 {
		return failure{stepFiles, errno}
	}
	if p.oom != nil {
		// Not possible without /proc, which a room may lack; the limits hold all the same.
		at := ^uintptr(99) // AT_FDCWD, -100
		fd, _, errno := syscall.RawSyscall6(unix.SYS_OPENAT, at, uintptr(unsafe.Pointer(p.oom)), unix.O_WRONLY|unix.O_CLOEXEC, 0, 0, 0)
		if errno == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p.oomScore))), uintptr(len(p.oomScore)))
			_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
	}
	for i := range p.limits {
		l := &p.limits[i]
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, l.resource, uintptr(unsafe.Pointer(&l.value)), 0, 0, 0); errno != 0 {
			return failure{stepLimits, errno}
		}
	}
	return failure{}
}

// renounce gives up rights, the ones that the later steps need last.
//
//go:norace
//go:noinline
//go:nosplit
func renounce(p *program) failure {
	if p.caps {
		for c := uintptr(0); c < 64; c++ {
			if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, c, 0, 0, 0, 0); errno == syscall.EINVAL {
				break // beyond the last capability that the kernel knows
			}
		}
	}
	if p.gid >= 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
			return failure{stepGroups, errno}
		}
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESGID, uintptr(p.gid), uintptr(p.gid), uintptr(p.gid)); errno != 0 {
			return failure{stepGroup, errno}
		}
	}
	if p.uid >= 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SETRESUID, uintptr(p.uid), uintptr(p.uid), uintptr(p.uid)); errno != 0 {
			return failure{stepUser, errno}
		}
		// Switching users clears it.
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0); errno != 0 {
			return failure{stepParent, errno}
		}
	}
	// With the rights of the new user: the supervisor may go where it may not.
	if p.dir != nil {
		if _, _, errno := syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(p.dir)), 0, 0); errno != 0 {
			return failure{stepDir, errno}
		}
	}
	if p.caps {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0)
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if _, _, errno := syscall.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0); errno != 0 {
			return failure{stepCaps, errno}
		}
	}
	if p.nnp {
		if _, _, errno := syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			return failure{stepNoNewPrivs, errno}
		}
	}
	if p.ruleset >= 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(p.ruleset), 0, 0); errno != 0 {
			return failure{stepLandlock, errno}
		}
	}
	// Ignored signals survive an exec (nohup, a shell's background job), and
	// handlers of the Go runtime must not outlive the unblocking.
	var action [4]uint64 // struct kernel_sigaction, all zero: SIG_DFL
	for s := uintptr(1); s <= 64; s++ {
		_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGACTION, s, uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
	var none uint64
	if _, _, errno := syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, 8, 0, 0); errno != 0 {
		return failure{stepSignals, errno}
	}
	if p.filter.Len > 0 {
		if _, _, errno := syscall.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&p.filter))); errno != 0 {
			return failure{stepSeccomp, errno}
		}
	}
	return failure{}
}
