package shim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// ignoreSignals keeps the tool from ending its supervisor: the kernel shields
// the first process of a namespace from signals for which it has no handler,
// and the Go runtime has handlers for these. (Package os/signal would do the
// same, and make this package wait for its turn to be initialised.)
func ignoreSignals() {
	action := [4]uint64{1} // struct kernel_sigaction: SIG_IGN
	for _, s := range []unix.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGABRT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM, unix.SIGUSR1, unix.SIGUSR2,
	} {
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0)
	}
}
