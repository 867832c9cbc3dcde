package sandbox

import "testing"

// A child of the tool's parent would be one that nobody waits for: the init of
// its namespace could not end before it.
func TestCaseChildOfTheParent(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		l.wants(l.python(`
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
number, CLONE_PARENT, SIGCHLD = 220 if platform.machine() == 'aarch64' else 56, 0x8000, 17
if libc.syscall(ctypes.c_long(number), ctypes.c_long(CLONE_PARENT | SIGCHLD), 0, 0, 0, 0) == 0:
    libc._exit(0)
print(ctypes.get_errno())
`), "1\n")
	})
}

// The machine's handler of core dumps runs as root outside of every sandbox.
// Only a limit of one byte keeps the kernel from starting it.
func TestCaseCrashStartsNoHandler(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		const crash = `
import resource
before = resource.getrlimit(resource.RLIMIT_CORE)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.prlimit(0, resource.RLIMIT_CORE, (0, 0))
print(before, resource.getrlimit(resource.RLIMIT_CORE))
`
		l.wants(l.python(crash), "(1, 1) (1, 1)\n")
		l.wants(l.run(Spec{Argv: []string{"python3", "-c", crash}}), "(1, 1) (1, 1)\n")
	})
}

// Who slows its supervisor down, or the worker, is not ended in time.
func TestCaseSchedulingOfOthers(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		l.wants(l.python(`
import os
for pid in {1, os.getppid() or 1}:
    for f, args in ((os.sched_setscheduler, (os.SCHED_IDLE, os.sched_param(0))), (os.sched_setaffinity, ({0},)),
                    (os.sched_setparam, (os.sched_param(0),))):
        try:
            f(pid, *args)
            print('did', f.__name__, pid)
        except PermissionError:
            pass
os.sched_setaffinity(0, os.sched_getaffinity(0))
`), "")
	})
}

// A tool in sync cannot be ended before the machine has written everything.
func TestCaseSyncDoesNotWait(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		r := l.run(Spec{Code: []byte("import os\nfor _ in range(200): os.sync()\nprint('done')")})
		l.wants(r, "done\n")
	})
}

// Protocols that nobody asked for have had most of the holes, and the kernel
// loads them on demand.
func TestCaseUnusualProtocols(t *testing.T) {
	inLab(t, onlyFull, func(l *lab) {
		l.wants(l.python(`
import socket
for family in (socket.AF_INET, socket.AF_INET6):
    for kind in (1, 2, 3, 5, 6, 10):
        for protocol in range(263):
            try:
                socket.socket(family, kind, protocol).close()
                if (kind, protocol) not in ((1, 0), (1, 6), (2, 0), (2, 17), (2, 1), (2, 58)):
                    print(family, kind, protocol)
            except OSError:
                pass
`), "")
	})
}

// Contexts of asynchronous input and output are counted for the whole machine.
func TestCaseContextsOfTheMachine(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		l.wants(l.python(`
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
context = ctypes.c_ulong(0)
print(libc.syscall(ctypes.c_long(0 if platform.machine() == 'aarch64' else 206), 1, ctypes.byref(context)))
`), "-1\n")
	})
}
