package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/warm"
	"github.com/toolworker/toolworker/internal/tool"
)

// inWarmLab runs a case at each of the levels, with code that starts warm.
func inWarmLab(t *testing.T, levels []tool.Isolation, try func(l *lab)) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			try(&lab{T: t, runner: warmRunner(t, level), level: level, root: newRoot(t), warm: true})
		})
	}
}

// Code at the levels that confine reaches neither the server that forked it,
// nor its descriptors, nor the init of its namespace; and the next run finds
// the same server unharmed.
func TestCaseServerIsOutOfReach(t *testing.T) {
	inWarmLab(t, confined, func(l *lab) {
		const seed = "print(hash('seed'))"
		before := l.python(seed).out
		r := l.run(Spec{Code: []byte(`
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getppid() or 1
def refused(f, *args):
    try: f(*args)
    except OSError: return True
    return False
print([fd for fd in range(1024) if not refused(os.fstat, fd)])
print([refused(os.kill, pid, s) for pid in (1, parent) for s in (signal.SIGKILL, signal.SIGSTOP, 0)])
print([libc.ptrace(16, pid, 0, 0) for pid in (1, parent)])
buf = ctypes.create_string_buffer(8)
class iovec(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('len', ctypes.c_size_t)]
v = iovec(ctypes.addressof(buf), 8)
print([libc.process_vm_readv(pid, ctypes.byref(v), 1, ctypes.byref(v), 1, 0) for pid in (1, parent)])
print([refused(open, '/proc/%d/%s' % (pid, name)) for pid in {1, parent} for name in ('mem', 'environ', 'maps', 'fd/4')] == [True] * 4 * len({1, parent}))
print(libc.unshare(0x10000000), libc.setns(0, 0), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None))`)})
		l.wants(r, "[0, 1, 2, 4]\n[True, True, True, True, True, True]\n[-1, -1]\n[-1, -1]\nTrue\n-1 -1 -1\n")
		if after := l.python(seed).out; after != before {
			l.Errorf("the server was replaced: hash %s, then %s", before, after)
		}
	})
}

// CASES 26, what the kernel keeps for those who ask by name.
func TestCaseNamesAreNotCarriedOver(t *testing.T) {
	inLab(t, onlyFull, func(l *lab) {
		const look = `
import ctypes, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def there(f, *args): return f(*args) != -1
s = socket.socket(socket.AF_UNIX)
print(there(libc.shmget, 77, 1, 0), there(libc.semget, 77, 1, 0), there(libc.msgget, 77, 0),
  os.path.exists('/tmp/left'), os.path.exists('/dev/shm/left'), s.connect_ex('\0left') == 0, [n for n in os.listdir('/tmp') if not os.getcwd().startswith('/tmp/' + n + '/')], os.listdir('/dev/shm'))`
		const nothing = "False False False False False False [] []\n"
		l.wants(l.python(look), nothing)
		l.wants(l.python(`
import ctypes, os, socket, subprocess
libc = ctypes.CDLL(None, use_errno=True)
assert libc.semget(77, 1, 0o1666) >= 0 and libc.msgget(77, 0o1666) >= 0
libc.shmget(77, 4096, 0o1666)
s = socket.socket(socket.AF_UNIX); s.bind('\0left'); s.listen()
for d in ('/tmp', '/dev/shm'):
    os.makedirs(d + '/left/deep'); os.chmod(d + '/left', 0)
if os.fork() == 0:
    os.setsid()
    s.accept()`), "")
		l.wants(l.python(look), nothing)
	})
}

// Sockets that are on their way over each other outlive their processes, and
// what is bound to a name stays bound.
func TestCaseSocketsInARingAreNotCarriedOver(t *testing.T) {
	inLab(t, onlyFull, func(l *lab) {
		for range 3 {
			l.wants(l.python(`
import array, socket
print(open('/proc/self/net/unix').read().count('\n'))
server, client, datagrams = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind('\0left'); server.listen(); client.connect('\0left'); datagrams.bind(('0.0.0.0', 4242))
fds = array.array('i', [server.fileno(), client.fileno(), datagrams.fileno(), 1, 4])
client.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])`), "1\n")
		}
	})
}

// The directory for temporary files at level reduced is the slot's, and empty.
func TestCaseTemporaryFilesAreNotCarriedOver(t *testing.T) {
	inLab(t, []tool.Isolation{tool.IsolationReduced}, func(l *lab) {
		l.wants(l.python("import os, tempfile\nd = tempfile.mkdtemp()\nos.makedirs(d + '/a/b'); open(d + '/a/b/c', 'w').close(); os.fchmod(os.open(d + '/a', os.O_RDONLY), 0)"), "")
		l.wants(l.python("import os\nprint(os.listdir(os.environ['TMPDIR']))"), "[]\n")
	})
}

// Whoever ends the server at the level that does not confine is told so.
func TestCaseServerEnded(t *testing.T) {
	inWarmLab(t, []tool.Isolation{tool.IsolationNone}, func(l *lab) {
		r := l.python("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()")
		if r.Hit != tool.SandboxViolation || r.Signal != "SIGKILL" {
			l.Errorf("got %v", r)
		}
		l.wants(l.python("print(1)"), "1\n")
	})
}

// Two projects, and two states of one project, never share a slot.
func TestKinds(t *testing.T) {
	root := newRoot(t)
	for _, p := range []string{"a/protected", "b", "exposed"} {
		if err := os.MkdirAll(filepath.Join(root, p), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	base := func() *Spec {
		return &Spec{
			Project: "p", Root: filepath.Join(root, "a"), Env: []string{"A=1"}, Protect: []string{"protected", "missing"},
			ReadOnly: []string{filepath.Join(root, "exposed")}, Limits: limits,
		}
	}
	kind := func(s *Spec) string {
		t.Helper()
		k, err := kindOf(s)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := kind(base())
	same := base()
	same.Code, same.Name, same.Input = []byte("x"), "other", []byte("{}")
	same.Limits.TimeoutSeconds, same.Limits.CPUSeconds, same.Limits.FileSizeBytes, same.Limits.OpenFiles = 1, 2, 3, 4
	if kind(same) != first {
		t.Error("what a run brings along makes a kind of its own")
	}
	for name, change := range map[string]func(s *Spec){
		"project": func(s *Spec) { s.Project = "q" }, "root": func(s *Spec) { s.Root = filepath.Join(root, "b") },
		"env": func(s *Spec) { s.Env = []string{"A=1", "B=2"} }, "split env": func(s *Spec) { s.Env = []string{"A", "1"} },
		"writable": func(s *Spec) { s.Writable = true }, "network": func(s *Spec) { s.Network = true },
		"protect": func(s *Spec) { s.Protect = s.Protect[:1] }, "exposed": func(s *Spec) { s.ReadOnly = nil },
		"memory": func(s *Spec) { s.Limits.MemoryBytes++ }, "pids": func(s *Spec) { s.Limits.PIDs++ },
		"cpus": func(s *Spec) { s.Limits.CPUs += 0.1 }, "least": func(s *Spec) { s.Least = tool.IsolationNone },
	} {
		s := base()
		change(s)
		if kind(s) == first {
			t.Errorf("%s makes no difference", name)
		}
	}
	last := first
	for name, change := range map[string]func() error{
		"a protected path appears":   func() error { return os.Mkdir(filepath.Join(root, "a/missing"), 0o755) },
		"the project's mode changes": func() error { return os.Chmod(filepath.Join(root, "a"), 0o700) },
		"an exposed directory is new": func() error {
			return errors.Join(os.Rename(root+"/exposed", root+"/old"), os.Mkdir(root+"/exposed", 0o755))
		},
		"a protected path is replaced": func() error {
			return errors.Join(os.Rename(root+"/a/protected", root+"/p"), os.Mkdir(root+"/a/protected", 0o755))
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if k := kind(base()); k == last {
			t.Errorf("%s: makes no difference", name)
		} else {
			last = k
		}
	}
	if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := kindOf(base()); err == nil {
		t.Error("a project that is gone has a kind")
	}
}

// refusing is ready, and takes no run.
type refusing struct{ closed chan struct{} }

func (r *refusing) Close() error { close(r.closed); return nil }

func (r *refusing) run(context.Context, *Spec) (*Exit, warm.Outcome, error) {
	return nil, warm.Broken, fmt.Errorf("%w: out of order", warm.ErrNotStarted)
}

// A warm way that does not work costs nobody a result, and is not tried all the time.
func TestFallsBackToCold(t *testing.T) {
	for name, start := range map[string]func(slot *refusing) (ready, error){
		"start": func(*refusing) (ready, error) { return nil, errors.New("out of order") },
		"run":   func(slot *refusing) (ready, error) { return slot, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := New(Config{Level: tool.IsolationNone})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			slot := &refusing{make(chan struct{})}
			starts := 0
			r.(*runner).warmth.start = func(context.Context, *Spec) (ready, error) {
				starts++
				return start(slot)
			}
			l := &lab{T: t, runner: r, root: newRoot(t)}
			for range 5 {
				if e := l.python("print(1)"); e.Warm || e.out != "1\n" {
					t.Errorf("got %v", e)
				}
			}
			if name == "run" {
				select {
				case <-slot.closed:
				case <-time.After(10 * time.Second):
					t.Error("the slot was not ended")
				}
			}
			_ = r.Close()
			if starts < 1 || starts > 3 {
				t.Errorf("%d starts were tried", starts)
			}
		})
	}
}

// What is started for one run is another process than for the next.
func TestSpawnSharesNothing(t *testing.T) {
	r, err := New(Config{Level: tool.IsolationNone, Warm: WarmSpawn})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l := &lab{T: t, runner: r, root: newRoot(t), warm: true}
	seen := map[string]bool{}
	for range 3 {
		seen[l.python("print(hash('seed'))").out] = true
	}
	if len(seen) != 3 {
		t.Errorf("three interpreters have the hash seeds %v", seen)
	}
}

func TestParseWarm(t *testing.T) {
	for _, s := range []string{"", "fork", "spawn", "off"} {
		if w, err := ParseWarm(s); err != nil || string(w) != s {
			t.Errorf("ParseWarm(%q) = %q, %v", s, w, err)
		}
	}
	if _, err := ParseWarm("Fork"); err == nil || !strings.Contains(err.Error(), `"Fork"`) {
		t.Errorf("got %v", err)
	}
	if _, err := New(Config{Level: tool.IsolationNone, Warm: "hot"}); err == nil {
		t.Error("an unknown way was taken")
	}
}

func TestHidden(t *testing.T) {
	got := hidden([]string{"/srv/p", "/tmp/a", "/tmp/a/b", "/tmp/ab", "/tmpx", "/dev/shm/x", "/dev/shmem"})
	if want := "/tmp/a /tmp/ab /dev/shm/x"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
