package sandbox

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

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

// A protected path may be a link, or lie behind one, or be no file at all:
// neither the link nor what it leads to is the tool's.
func TestCaseProtectedLinks(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		for name, text := range map[string]string{"real/f": "ok", "git/hooks/h": "ok"} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(l.root, name)), 0o755); err != nil {
				l.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(l.root, name), []byte(text), 0o644); err != nil {
				l.Fatal(err)
			}
		}
		for name, target := range map[string]string{"link": "real", ".git": "git"} {
			if err := os.Symlink(target, filepath.Join(l.root, name)); err != nil {
				l.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(l.root, "fifo"), 0o644); err != nil {
			l.Fatal(err)
		}
		run := func(code string) result {
			l.Helper()
			return l.run(Spec{Code: []byte(code), Writable: true, Protect: []string{"link", ".git/hooks", "fifo"}})
		}
		check := func() {
			l.Helper()
			for name, want := range map[string]string{"link/f": "ok", ".git/hooks/h": "ok", "real/f": "ok", "git/hooks/h": "ok"} {
				if b, err := os.ReadFile(filepath.Join(l.root, name)); err != nil || string(b) != want {
					l.Errorf("%s holds %q, %v", name, b, err)
				}
			}
			for name, want := range map[string]string{"link": "real", ".git": "git"} {
				if target, err := os.Readlink(filepath.Join(l.root, name)); err != nil || target != want {
					l.Errorf("%s leads to %q, %v", name, target, err)
				}
			}
		}
		l.wants(run("pass"), "")
		check()
		run(`
import os
def tried(f, *args):
    try: f(*args)
    except OSError: pass
def write(name): open(name, 'w').write('evil')
for name in ('real/f', 'link/f', 'git/hooks/h', '.git/hooks/h', 'git/hooks/new', 'fifo'):
    if name != 'fifo': tried(write, name)
for name in ('link', '.git', 'fifo'):
    tried(os.unlink, name)
tried(os.rename, 'git', 'gone')
tried(os.rename, 'git/hooks', 'git/gone')
os.path.lexists('link') or os.makedirs('link')
os.path.lexists('.git') or os.makedirs('.git/hooks')
for name in ('link/f', '.git/hooks/h'):
    tried(write, name)
`)
		check()
	})
}
