package seccomp

import "strings"

// Options say what the filter allows beyond what every tool may do, and what
// it denies because nothing else does.
type Options struct {
	// NoMemfd denies memory that no resource limit counts: memfd_create and
	// System V shared memory. Set it where no control group counts either.
	NoMemfd bool
	// Shared is set where the tool has no namespaces of its own (level
	// reduced): it denies the sockets that do not belong to a network
	// namespace, System V IPC, and the calls with a path or a process id that
	// Landlock does not know of.
	Shared bool
	// Attributes allows, in spite of Shared, the calls that change owner, mode,
	// times and attributes of a file by its path, for a tool that may write to
	// all that its user owns in sight.
	Attributes bool
	// Inet allows IPv4 and IPv6 sockets in spite of Shared.
	Inet bool
	// NoProcesses denies new processes; threads are still allowed.
	NoProcesses bool
	// NoUnix denies the unix sockets that could call others by an abstract
	// name. Set it where the network namespace is the host's and Landlock does
	// not keep such names apart.
	NoUnix bool
}

// allowed are the calls that every tool may make, whatever their arguments.
var allowed = strings.Fields(`
	read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 close close_range lseek
	stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat
	getdents getdents64 getcwd chdir fchdir
	mkdir mkdirat rmdir unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat
	truncate ftruncate fallocate fadvise64 readahead copy_file_range sendfile splice tee vmsplice
	fsync fdatasync sync_file_range flock umask cachestat
	getxattr lgetxattr fgetxattr getxattrat listxattr llistxattr flistxattr listxattrat file_getattr
	fsetxattr fremovexattr fchown
	dup dup2 dup3 fcntl pipe pipe2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime
	poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2
	io_destroy io_submit io_cancel io_getevents io_pgetevents inotify_rm_watch
	mmap munmap mremap mprotect madvise msync mincore brk mlock mlock2 munlock mlockall munlockall remap_file_pages
	membarrier pkey_alloc pkey_free pkey_mprotect map_shadow_stack mseal get_mempolicy
	execve execveat exit exit_group wait4 waitid
	getpid getppid gettid getuid geteuid getgid getegid getresuid getresgid getgroups getpgid getpgrp getsid setsid setpgid
	setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capget capset
	prctl arch_prctl set_tid_address set_robust_list get_robust_list rseq rseq_slice_yield restart_syscall
	futex futex_wait futex_wake futex_requeue futex_waitv
	rt_sigaction rt_sigprocmask rt_sigpending rt_sigreturn rt_sigsuspend rt_sigtimedwait sigaltstack pause
	alarm getitimer setitimer nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times
	timer_create timer_delete timer_getoverrun timer_gettime timer_settime
	getrlimit getrusage sysinfo uname getrandom getcpu getpriority ioprio_get
	sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_getattr
	sched_get_priority_max sched_get_priority_min sched_rr_get_interval
	bind listen accept accept4 connect getsockname getpeername getsockopt setsockopt shutdown
	sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg
	landlock_create_ruleset landlock_add_rule landlock_restrict_self`)

// attributes are calls that change what a file is, and that Landlock does
// not know of.
var attributes = strings.Fields(`
	chown lchown fchownat setxattr lsetxattr setxattrat removexattr lremovexattr removexattrat file_setattr
	utime utimes futimesat utimensat`)

// ownNamespaces are calls that do no harm only in namespaces of one's own.
var ownNamespaces = strings.Fields(`
	inotify_init inotify_init1 inotify_add_watch setpriority ioprio_set
	msgget msgsnd msgrcv msgctl semget semop semtimedop semctl`)

// uncounted are ways to memory that no resource limit counts.
var uncounted = strings.Fields("memfd_create shmget shmat shmdt shmctl")

// scheduling are calls that say by the first argument whose scheduling is
// changed, 0 for the caller's.
var scheduling = strings.Fields("sched_setaffinity sched_setparam sched_setscheduler sched_setattr")

// absentOnPurpose are answered as if the kernel were older. The contexts of
// io_setup are counted for the whole machine: one tool could have them all.
var absentOnPurpose = strings.Fields("clone3 openat2 io_setup")

// pretended do nothing and succeed: a tool would wait, and could not be ended
// meanwhile, until all that the machine has to write is on its disks.
var pretended = strings.Fields("sync syncfs")

// Some arguments.
const (
	// nsFlags are the namespaces of clone. CLONE_NEWTIME shares its bit with
	// the exit signal and is known to clone3 and unshare only.
	nsFlags     = 0x7E020000
	cloneThread = 0x00010000
	// cloneParent makes a child of the caller's parent, which does not expect any.
	cloneParent  = 0x00008000
	setIDs       = 0o6000 // S_ISUID, S_ISGID
	oCreat       = 0o100
	oTmpfile     = 0o20000000
	afUnix       = 1
	afInet       = 2
	afInet6      = 10
	sockStream   = 1
	sockDgram    = 2
	sockSeqPkt   = 5
	sockTypeMask = 0xf
	tiocsti      = 0x5412
	tioclinux    = 0x541C
	queryPersona = 0xffffffff
	initPID      = 1
	rlimitCore   = 4
)

// protocols of IPv4 and IPv6 sockets: the usual one of the type, ICMP for
// ping, TCP and UDP. The kernel would load the modules of others when asked.
var protocols = []uint32{0, 1, 6, 17, 58}

// policy gives the body of every call: what to do once its number is known.
// Calls that are not in it give EPERM.
func policy(o Options) map[string]body {
	p := map[string]body{}
	set := func(names []string, b body) {
		for _, n := range names {
			p[n] = b
		}
	}
	set(allowed, allow)
	set(absentOnPurpose, refuse(enosys))
	set(pretended, succeed)
	set(scheduling, allow)
	if !o.Shared {
		set(ownNamespaces, allow)
	}
	if !o.Shared || o.Attributes {
		set(attributes, allow)
	} else {
		// futimens is utimensat without a path.
		p["utimensat"] = ifNull(1, allow, refuse(eperm))
	}
	if !o.NoMemfd {
		p["memfd_create"] = allow
		if !o.Shared {
			set(uncounted, allow)
		}
	}

	// The tool's supervisor is process 1 of its namespace and of the same
	// user. Threads are signalled by tgkill; by tkill and by descriptor the
	// target cannot be told.
	notInit := ifEqual(0, []uint32{initPID}, refuse(eperm), allow)
	set(strings.Fields("kill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_open"), notInit)
	limits := notInit
	if o.Shared {
		own := ifEqual(0, []uint32{0}, allow, refuse(eperm))
		limits = own
		set(scheduling, own)
	}
	// The limit of core dumps is the one that keeps the machine's handler from
	// being started; a lower one would not.
	p["setrlimit"] = ifEqual(0, []uint32{rlimitCore}, succeed, allow)
	p["prlimit64"] = ifEqual(1, []uint32{rlimitCore}, ifNull(2, limits, succeed), limits)

	p["clone"] = ifAny(0, nsFlags|cloneParent, refuse(eperm), allow)
	p["fork"], p["vfork"] = allow, allow
	if o.NoProcesses {
		p["clone"] = ifAny(0, nsFlags|cloneParent, refuse(eperm), ifAny(0, cloneThread, allow, refuse(eperm)))
		p["fork"], p["vfork"] = refuse(eperm), refuse(eperm)
	}

	// Other families (vsock, netlink, packet, alg, ...) ignore the network
	// namespace or are of no use in it.
	unixOnly := ifEqual(0, []uint32{afUnix}, allow, refuse(eacces))
	p["socketpair"] = unixOnly
	inet := ifMasked(1, sockTypeMask, []uint32{sockStream, sockDgram},
		ifEqual(2, protocols, allow, refuse(eprotonosupport)), refuse(eprotonosupport))
	inet = ifEqual(0, []uint32{afInet, afInet6}, inet, refuse(eacces))
	p["socket"] = ifEqual(0, []uint32{afUnix}, allow, inet)
	if o.Shared || o.NoUnix {
		p["socket"] = inet
		if o.Shared && !o.Inet {
			p["socket"] = refuse(eacces)
		}
		// A datagram socket of a pair could still send to any path.
		p["socketpair"] = ifEqual(0, []uint32{afUnix},
			ifMasked(1, sockTypeMask, []uint32{sockStream, sockSeqPkt}, allow, refuse(eacces)), refuse(eacces))
	}

	// A setuid file in the project would hand the owner's rights to whoever
	// runs it on the host.
	p["fchmod"] = ifAny(1, setIDs, refuse(eperm), allow)
	p["mknod"] = ifAny(1, setIDs, refuse(eperm), allow)
	p["mknodat"] = ifAny(2, setIDs, refuse(eperm), allow)
	p["creat"] = ifAny(1, setIDs, refuse(eperm), allow)
	p["open"] = ifAny(1, oCreat|oTmpfile, ifAny(2, setIDs, refuse(eperm), allow), allow)
	p["openat"] = ifAny(2, oCreat|oTmpfile, ifAny(3, setIDs, refuse(eperm), allow), allow)
	if !o.Shared || o.Attributes {
		p["chmod"] = ifAny(1, setIDs, refuse(eperm), allow)
		p["fchmodat"] = ifAny(2, setIDs, refuse(eperm), allow)
		p["fchmodat2"] = ifAny(2, setIDs, refuse(eperm), allow)
	}

	p["ioctl"] = ifEqual(1, []uint32{tiocsti, tioclinux}, refuse(eperm), allow)
	p["personality"] = ifEqual(0, []uint32{queryPersona}, allow, refuse(eperm))
	return p
}
