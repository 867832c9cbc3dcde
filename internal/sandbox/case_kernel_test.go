package sandbox

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestCase27Network(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	// An abstract socket has no file that could be hidden.
	abstract, err := net.Listen("unix", fmt.Sprintf("@toolworker-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	dir, err := os.MkdirTemp("/tmp", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "socket")
	named, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	for _, level := range confined {
		t.Run(string(level), func(t *testing.T) {
			l := &lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)}
			r := l.python(`
import socket
def tried(family, kind, address):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(2)
            s.connect(address)
            if kind == socket.SOCK_DGRAM:
                s.send(b'x')
        print('reached', address)
    except OSError:
        pass
port = %d
tried(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', port))
tried(socket.AF_INET, socket.SOCK_STREAM, ('0.0.0.0', port))
tried(socket.AF_INET6, socket.SOCK_STREAM, ('::1', port))
tried(socket.AF_INET, socket.SOCK_STREAM, ('8.8.8.8', 53))
tried(socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', 53))
tried(socket.AF_UNIX, socket.SOCK_STREAM, '\0toolworker-test-%d')
tried(socket.AF_UNIX, socket.SOCK_STREAM, %q)
tried(socket.AF_UNIX, socket.SOCK_DGRAM, '/dev/log')
for family in (16, 17, 38, 40, 44): # netlink, packet, alg, vsock, xdp
    for kind in (1, 2, 3):
        try:
            socket.socket(family, kind).close()
            print('family', family)
        except OSError:
            pass
try:
    socket.getaddrinfo('localhost.localdomain.invalid', 1)
    print('resolved')
except OSError:
    pass
a, b = socket.socketpair()
a.send(b'pair')
print(b.recv(10))
`, listener.Addr().(*net.TCPAddr).Port, os.Getpid(), path)
			l.wants(r, "b'pair'\n")
		})
	}
}

func TestCase27DatagramPairCannotReachAPath(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		dir, err := os.MkdirTemp("/tmp", "log") // the name of a socket is short
		if err != nil {
			l.Fatal(err)
		}
		l.Cleanup(func() { os.RemoveAll(dir) })
		path := filepath.Join(dir, "log")
		c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
		if err != nil {
			l.Fatal(err)
		}
		defer c.Close()
		l.wants(l.python(`
import socket
try:
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b'x', %q)
    print('reached')
except OSError:
    pass
`, path), "")
	})
}

func TestCase27SamePortTwice(t *testing.T) {
	inLab(t, onlyFull, func(l *lab) {
		l.warm = false // of two at a time, one may find nothing ready
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				l.wants(l.python(`
import socket, time
s = socket.socket()
s.bind(('0.0.0.0', 4222))
s.listen()
time.sleep(0.3)
print('bound')
`), "bound\n")
			})
		}
		wg.Wait()
	})
}

func TestCaseNetworkGranted(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, level := range confined {
		t.Run(string(level), func(t *testing.T) {
			l := &lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)}
			r := l.run(Spec{Network: true, Code: fmt.Appendf(nil, `
import socket
socket.create_connection(('127.0.0.1', %d), 5).close()
print(socket.gethostbyname('localhost'))
for family in (1, 16, 17, 40):
    try:
        s = socket.socket(family, 1)
        s.connect('/run/docker.sock' if family == 1 else (0, 0))
        print('family', family)
    except (OSError, TypeError):
        pass
`, listener.Addr().(*net.TCPAddr).Port)})
			l.wants(r, "127.0.0.1\n")
			for _, m := range r.Sandbox.Mechanisms {
				if m == "net" {
					t.Errorf("mechanisms %v name a network namespace", r.Sandbox.Mechanisms)
				}
			}
			if !strings.Contains(strings.Join(r.Sandbox.Missing, " "), "net") {
				t.Errorf("missing %v does not name net", r.Sandbox.Missing)
			}
		})
	}
}

// calls that every confined tool must be refused, as ctypes makes them.
const forbiddenCalls = `
import ctypes, errno, os, platform
libc = ctypes.CDLL(None, use_errno=True)
arm = platform.machine() == 'aarch64'
def call(name, amd64, arm64, *args):
    ctypes.set_errno(0)
    n = arm64 if arm else amd64
    r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    e = errno.errorcode.get(ctypes.get_errno(), '0')
    if r != -1 or e != 'EPERM':
        print(name, r, e)
NEWUSER, NEWNS, NEWNET = 0x10000000, 0x20000, 0x40000000
for flags in (NEWUSER, NEWNS, NEWNET, 0x20000000, 0x08000000, 0x04000000, 0x02000000, 0x80):
    call('unshare', 272, 97, flags)
    if flags != 0x80:
        call('clone', 56, 220, flags | 17, 0, 0, 0, 0)
call('setns', 308, 268, 0, 0)
call('mount', 165, 40, b'none', b'/tmp', b'tmpfs', 0, 0)
call('umount2', 166, 39, b'/tmp', 2)
call('remount', 165, 40, b'', b'/', b'', 32 | 4096, 0)
call('pivot_root', 155, 41, b'/tmp', b'/tmp')
call('chroot', 161, 51, b'/tmp')
call('open_tree', 428, 428, -100, b'/', 1)
call('move_mount', 429, 429, 0, b'', 0, b'', 0)
call('fsopen', 430, 430, b'tmpfs', 0)
call('mount_setattr', 442, 442, -100, b'/', 0, 0, 0)
call('ptrace', 101, 117, 16, 1, 0, 0)
call('process_vm_readv', 310, 270, 1, 0, 0, 0, 0, 0)
call('pidfd_getfd', 438, 438, 0, 0, 0)
call('kcmp', 312, 272, 1, 1, 0, 0, 0)
call('bpf', 321, 280, 0, 0, 0)
call('io_uring_setup', 425, 425, 1, 0)
call('keyctl', 250, 219, 0, 0, 0)
call('add_key', 248, 217, b'user', b'x', b'x', 1, 0)
call('request_key', 249, 218, b'user', b'x', 0, 0)
call('userfaultfd', 323, 282, 0)
call('perf_event_open', 298, 241, 0, 0, 0, 0, 0)
call('memfd_secret', 447, 447, 0)
call('init_module', 175, 105, 0, 0, b'')
call('kexec_load', 246, 104, 0, 0, 0, 0)
call('reboot', 169, 142, 0, 0, 0, 0)
call('swapon', 167, 224, b'/tmp/x', 0)
call('settimeofday', 164, 170, 0, 0)
call('sethostname', 170, 161, b'x', 1)
call('name_to_handle_at', 303, 264, -100, b'/', 0, 0, 0)
call('open_by_handle_at', 304, 265, 0, 0, 0)
call('seccomp', 317, 277, 0, 0, 0)
call('personality', 135, 92, 0x0400000)
call('quotactl', 179, 60, 0, 0, 0, 0)
call('syslog', 103, 116, 3, 0, 0)
call('fanotify_init', 300, 262, 0, 0)
call('ioctl TIOCSTI', 16, 29, 0, 0x5412, b'x')
print('done')
`

func TestCase28ForbiddenCalls(t *testing.T) {
	inLab(t, confined, func(l *lab) { l.wants(l.python("%s", forbiddenCalls), "done\n") })
}

func TestCase28ForeignArchitecture(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("32-bit calls of x86")
	}
	inLab(t, confined, func(l *lab) {
		r := l.python(`
import ctypes, mmap
m = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
m.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])) # mov $20, %%eax; int $0x80; ret: getpid
f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
print(f() > 0)
`)
		if r.Hit != tool.SandboxViolation || r.Signal != "SIGSYS" || r.Code != 159 || r.out != "" {
			l.Errorf("want sandbox_violation, got %v", r)
		}
	})
}

func TestCaseSupervisorIsOutOfReach(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		r := l.python(`
import os, resource, signal
def tried(f, *args):
    try:
        f(*args)
        print('did', f.__name__, args)
    except OSError:
        pass
for pid in {1, os.getppid(), %d} - {0, os.getpid()}:
    for sig in signal.valid_signals():
        tried(os.kill, pid, sig)
    tried(resource.prlimit, pid, resource.RLIMIT_CPU, (1, 1))
    tried(signal.pidfd_send_signal, 0, 9)
    tried(os.pidfd_open, 1)
for pid in {os.getppid(), %d} - {0, os.getpid()}:
    tried(os.listdir, '/proc/%%d/fd' %% pid)
    tried(open, '/proc/%%d/mem' %% pid, 'r+')
print('alive')
`, os.Getpid(), os.Getpid())
		l.wants(r, "alive\n")
	})
}

func TestCaseSupervisorKilledAtLevelNone(t *testing.T) {
	inLab(t, []tool.Isolation{tool.IsolationNone}, func(l *lab) {
		m := mark()
		r := l.run(Spec{Argv: []string{"sh", "-c", "kill -9 $PPID; sleep " + m}})
		if r.Hit != tool.SandboxViolation {
			l.Errorf("want sandbox_violation, got %v", r)
		}
		if l.hasMechanism("pids:cgroup") {
			eventually(l.T, "the tool is dead", func() bool { return len(processesWith(m)) == 0 })
		} else {
			for _, pid := range processesWith(m) { // out of reach, as documented
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	})
}

func TestCase36Environment(t *testing.T) {
	for k, v := range map[string]string{
		"LD_PRELOAD": "", "BASH_ENV": "/nowhere", "ENV": "/nowhere", "PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere", "SECRET": "hunter2",
	} {
		t.Setenv(k, v)
	}
	for _, level := range allLevels {
		t.Run(string(level), func(t *testing.T) {
			l := &lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)}
			env := []string{"PATH=/usr/bin:/bin", "A=b", "EMPTY=", "TMPDIR=/tmp"}
			// Python itself adds LC_CTYPE where the locale is C.
			l.wants(l.run(Spec{Env: env, Argv: []string{"python3", "-c", "import os\nfor k in sorted(os.environb):\n if k != b'LC_CTYPE': print(k.decode() + '=' + os.environb[k].decode())"}}),
				"A=b\nEMPTY=\nPATH=/usr/bin:/bin\nTMPDIR=/tmp\n")
			r := l.run(Spec{Env: env, Argv: []string{"env"}})
			lines := strings.Split(strings.TrimSpace(r.out), "\n")
			if len(lines) != len(env) {
				t.Errorf("environment %q, want %q", lines, env)
			}
		})
	}
}

func TestCase37ArgumentsAreLiteral(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wants(l.run(Spec{Argv: []string{"printf", "%s|", "-x", "$(id)", "`id`", "a b", "", "*", "\n"}}), "-x|$(id)|`id`|a b||*|\n|")
	})
}

func TestCaseStartFailures(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		file := filepath.Join(l.root, "file")
		if err := os.WriteFile(file, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
			l.Fatal(err)
		}
		text := filepath.Join(l.root, "text")
		if err := os.WriteFile(text, []byte("text"), 0o644); err != nil {
			l.Fatal(err)
		}
		for want, argv := range map[string][]string{
			"no-such-command: command not found": {"no-such-command"},
			file + ": command not found":         {file},
			text + ": permission denied":         {text},
			"/usr: permission denied":            {"/usr"},
		} {
			r := l.run(Spec{Argv: argv})
			if r.StartError != want || r.Code != -1 {
				l.Errorf("%q: want %q, got %v", argv, want, r)
			}
		}
	})
}
