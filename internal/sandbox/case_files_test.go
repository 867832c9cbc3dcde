package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestCase07MillionFilesInTmp(t *testing.T) {
	inLab(t, onlyFull, func(l *lab) {
		r := l.python(`
import errno
try:
    for i in range(10**6):
        open('/tmp/%%d' %% i, 'w').close()
except OSError as e:
    print(errno.errorcode[e.errno], i > 1000)
try:
    for name in 'xy':
        with open('/dev/shm/' + name, 'wb') as f:
            for i in range(40):
                f.write(bytes(1 << 20))
except OSError as e:
    print(errno.errorcode[e.errno])
`)
		l.wants(r, "ENOSPC True\nENOSPC\n")
	})
}

func TestCase07FilesThatTakeLongToRemove(t *testing.T) {
	inLab(t, []tool.Isolation{tool.IsolationReduced}, func(l *lab) {
		r := l.python(`
import os, tempfile
print(tempfile.gettempdir())
for i in range(3000):
    open('%%s/%%d' %% (tempfile.gettempdir(), i), 'w').close()
`)
		dir := strings.TrimSpace(r.out)
		if r.Code != 0 || !strings.Contains(dir, "toolworker-tool-") {
			l.Fatal(r)
		}
		eventually(l.T, "the directory is removed", func() bool {
			entries, err := os.ReadDir(dir)
			return errors.Is(err, os.ErrNotExist) || l.warm && len(entries) == 0
		})
	})
}

// Directories in each other, deeper than a path can name: an answer does not
// wait for their removal, and the removal has an end.
func TestCase24DeepTemporaryFiles(t *testing.T) {
	inLab(t, []tool.Isolation{tool.IsolationReduced}, func(l *lab) {
		r := l.python(`
import os
print(os.environ['TMPDIR'])
os.chdir(os.environ['TMPDIR'])
for i in range(3000):
    os.mkdir('d'); os.chdir('d')
`)
		dir := strings.TrimSpace(r.out)
		if r.Code != 0 {
			l.Fatal(r)
		}
		eventually(l.T, "the directory is removed", func() bool {
			entries, err := os.ReadDir(dir)
			return errors.Is(err, os.ErrNotExist) || l.warm && len(entries) == 0
		})
		l.wants(l.python("import os\nprint(os.listdir(os.environ['TMPDIR']))"), "[]\n")
	})
}

func TestCase17SecretsOfTheHost(t *testing.T) {
	secret := "hunter2-of-the-worker"
	t.Setenv("WORKER_SECRET", secret)
	outside := newRoot(t)
	private := filepath.Join(outside, "private")
	if err := os.WriteFile(private, []byte(secret), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, level := range confined {
		t.Run(string(level), func(t *testing.T) {
			l := &lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)}
			r := l.python(`
import os
paths = ['/etc/shadow', '/etc/gshadow', '/root/.bashrc', '/var/run/docker.sock', '/run/docker.sock', '/proc/1/environ', '/proc/1/cmdline',
         '/proc/1/root/etc/shadow', '/proc/%d/environ', '/proc/%d/root/etc/shadow', '/proc/%d/mem', '/proc/self/root/etc/shadow',
         '/proc/kcore', '/proc/kallsyms', '/sys/kernel/uevent_seqnum', '/dev/mem', '/dev/sda', '/dev/vda', '/dev/kmsg', %q]
for p in paths + ['/proc/%%d/environ' %% os.getppid()]:
    try:
        with open(p, 'rb') as f:
            print(p, f.read(100))
    except OSError as e:
        pass
for d in ['/home', '/root', '/var/lib', '/var/log', '/sys', '/boot', '/run', %q]:
    try:
        print(d, os.listdir(d))
    except OSError as e:
        pass
`, os.Getpid(), os.Getpid(), os.Getpid(), private, outside)
			l.wants(r, "")
		})
	}
}

func TestCase18WritesToTheSystem(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		r := l.python(`
import errno, os
for p in ['/usr/x', '/usr/bin/x', '/etc/x', '/etc/passwd', '/x', '/bin/x', '/lib/x', '/dev/x', '/proc/x', '/proc/sys/kernel/hostname']:
    try:
        open(p, 'w').close()
        print('wrote', p)
    except OSError as e:
        if e.errno not in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT):
            print(p, e)
for f, args in [(os.unlink, ('/usr/bin/env',)), (os.rename, ('/usr/bin/env', '/usr/bin/x')), (os.mkdir, ('/x',)), (os.rmdir, ('/usr/lib',)),
                (os.symlink, ('x', '/usr/x')), (os.chmod, ('/usr/bin/env', 0o777)), (os.truncate, ('/usr/bin/env', 0))]:
    try:
        f(*args)
        print('did', f, args)
    except OSError as e:
        if e.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            print(f, e)
`)
		l.wants(r, "")
		if l.level == tool.IsolationFull {
			l.wants(l.python(`
import errno
for p in ['/usr/x', '/x', '/etc/x']:
    try:
        open(p, 'w')
    except OSError as e:
        print(errno.errorcode[e.errno])
`), "EROFS\nEROFS\nEROFS\n")
		}
	})
}

func TestCase18WritesOfAToolThatMayNot(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		file := filepath.Join(l.root, "file")
		if err := os.WriteFile(file, []byte("old"), 0o666); err != nil {
			l.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(l.root, "dir"), 0o777); err != nil {
			l.Fatal(err)
		}
		r := l.run(Spec{Code: []byte(`
import os
def tried(f, *args):
    try:
        f(*args)
        print('did', f.__name__, args)
    except OSError:
        pass
tried(open, 'new', 'w')
tried(open, 'file', 'a')
tried(open, 'file', 'r+')
tried(os.truncate, 'file', 0)
tried(os.unlink, 'file')
tried(os.rename, 'file', 'file2')
tried(os.link, 'file', 'file2')
tried(os.symlink, 'file', 'file2')
tried(os.mkdir, 'dir2')
tried(os.rmdir, 'dir')
tried(os.chmod, 'file', 0o600)
tried(os.utime, 'file', (1, 1))
tried(os.setxattr, 'file', 'user.x', b'x')
print(open('file').read())
`)})
		l.wants(r, "old\n")
		if b, err := os.ReadFile(file); err != nil || string(b) != "old" {
			l.Errorf("file holds %q, %v", b, err)
		}
		if entries, _ := os.ReadDir(l.root); len(entries) != 2 {
			l.Errorf("the project holds %v", entries)
		}
	})
}

func TestCase21HardLinkToAFileOutside(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		r := l.python(`
import errno, os
for p in ['/usr/bin/env', '/etc/hosts', '/bin/sh']:
    try:
        os.link(p, 'link')
        print('linked', p)
    except OSError as e:
        if e.errno not in (errno.EXDEV, errno.EACCES, errno.EPERM):
            print(e)
`)
		l.wants(r, "")
	})
}

func TestCase23SparseFile(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		r := l.python(`
import errno
for size in [1 << 40, (64 << 20) + 1]:
    try:
        with open('big', 'wb') as f:
            f.truncate(size)
        print('made')
    except OSError as e:
        print(errno.errorcode[e.errno])
with open('fits', 'wb') as f:
    f.truncate(64 << 20)
`)
		l.wants(r, "EFBIG\nEFBIG\n")
		r = l.shell("exec head -c 100000000 /dev/zero > big")
		if r.Hit != tool.LimitExceeded || r.HitName != "file_size_bytes" || r.Signal != "SIGXFSZ" {
			l.Errorf("want limit_exceeded, got %v", r)
		}
	})
}

func TestCase24DeepDirectoriesAndOddNames(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		l.wants(l.python(`
import os
here = os.open('.', os.O_RDONLY)
for i in range(1000):
    os.mkdir('d')
    os.chdir('d')
os.fchdir(here)
for name in [b'\xff\xfe', b'new\nline', b' ', b'-rf', b'*', b'"', b'\x01']:
    open(name, 'w').close()
print('made')
`), "made\n")
		// What is there does not hinder the next one.
		l.wants(l.python("import os; print(len(os.listdir('.')))"), "8\n")
	})
}

func TestCase25SetuidFiles(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		r := l.python(`
import errno, os
open('f', 'w').close()
fd = os.open('f', os.O_RDWR)
def tried(f, *args):
    try:
        f(*args)
        print('did', f.__name__, args)
    except PermissionError:
        pass
for bits in (0o4755, 0o2755, 0o6777):
    tried(os.chmod, 'f', bits)
    tried(os.fchmod, fd, bits)
    tried(os.open, 'g', os.O_CREAT | os.O_WRONLY, bits)
    tried(os.mknod, 'h', bits | 0o100000)
tried(os.mknod, 'device', 0o020666, os.makedev(1, 3))
os.fchmod(fd, 0o777)
os.mkfifo('fifo')
print(oct(os.stat('f').st_mode), sorted(os.listdir('.')))
`)
		l.wants(r, "0o100777 ['f', 'fifo']\n")
	})
}

func TestCase26NothingIsCarriedOver(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		first := l.run(Spec{Writable: true, Env: []string{"PATH=/usr/bin:/bin", "FIRST=1"}, Code: []byte(`
import os, sys, tempfile, signal, builtins
os.environ['LEFT'] = 'x'
os.umask(0)
os.chdir('/')
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
sys.modules['left'] = sys
builtins.left = 1
try:
    print(tempfile.NamedTemporaryFile(delete=False, prefix='left').name)
except OSError:
    print('none')
`)})
		name := strings.TrimSpace(first.out)
		if first.Code != 0 || name == "" {
			l.Fatal(first)
		}
		if l.level == tool.IsolationReduced {
			eventually(l.T, "the temporary file is removed", func() bool {
				_, err := os.Lstat(name)
				return errors.Is(err, os.ErrNotExist)
			})
		}
		second := l.run(Spec{Writable: true, Code: fmt.Appendf(nil, `
import os, sys, signal, builtins
print('LEFT' in os.environ, 'FIRST' in os.environ, oct(os.umask(0o22)), os.getcwd() == %q, 'left' in sys.modules, hasattr(builtins, 'left'),
      signal.pthread_sigmask(signal.SIG_BLOCK, []), os.path.exists(%q))
`, l.root, name)})
		left := "False" // a temporary file at level none is the machine's
		if l.level == tool.IsolationNone {
			left = "True"
			os.Remove(name)
		}
		l.wants(second, "False False 0o22 True False False set() "+left+"\n")
	})
}

func TestCaseOwnershipOfWhatAToolWrites(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		for _, mode := range []os.FileMode{0o755, 0o700} {
			root := newRoot(l.T)
			if err := os.Chmod(root, mode); err != nil {
				l.Fatal(err)
			}
			l.wantsWritten(root, os.Geteuid(), os.Getegid())
		}
		if err := os.Chown(l.root, 1234, 2345); err == nil && l.level != tool.IsolationNone {
			root := newRoot(l.T)
			for dir := root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o755); err != nil {
					l.Fatal(err)
				}
			}
			if err := os.Chown(root, 1234, 2345); err != nil {
				l.Fatal(err)
			}
			if err := os.Chmod(root, 0o700); err != nil {
				l.Fatal(err)
			}
			l.wantsWritten(root, 1234, 2345)
		}
	})
}

// wantsWritten has a tool write and fails unless it is the owner's.
func (l *lab) wantsWritten(root string, uid, gid int) {
	l.Helper()
	l.wants(l.run(Spec{Root: root, Writable: true, Code: []byte("import os\nos.makedirs('a/b')\nopen('a/b/c', 'w').write('x')\nprint(open('a/b/c').read())")}), "x\n")
	for _, p := range []string{"a", "a/b", "a/b/c"} {
		st, err := os.Lstat(filepath.Join(root, p))
		if err != nil {
			l.Fatal(err)
		}
		if s := st.Sys().(*syscall.Stat_t); int(s.Uid) != uid || int(s.Gid) != gid {
			l.Errorf("%s belongs to %d:%d, want %d:%d", p, s.Uid, s.Gid, uid, gid)
		}
	}
}

func TestCaseProjectsAnywhere(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		parents := []string{l.root, "/tmp", "/dev/shm"}
		for _, parent := range parents {
			root, err := os.MkdirTemp(parent, "project with space-")
			if err != nil {
				l.Fatal(err)
			}
			l.Cleanup(func() { os.RemoveAll(root) })
			r := l.run(Spec{Root: root, Writable: true, Argv: []string{"sh", "-c", `pwd; echo x > "$PWD/f"; exec cat f`}})
			l.wants(r, root+"\nx\n")
		}
	})
}

func TestCaseReadOnlyDirectories(t *testing.T) {
	inLab(t, confined, func(l *lab) {
		dir := newRoot(l.T)
		if err := os.WriteFile(filepath.Join(dir, "tool.py"), []byte("print('tool')"), 0o600); err != nil {
			l.Fatal(err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			l.Fatal(err)
		}
		script := filepath.Join(dir, "tool.py")
		l.wants(l.run(Spec{Argv: []string{"python3", "-I", script}, ReadOnly: []string{dir}, Writable: true}), "tool\n")
		r := l.run(Spec{Argv: []string{"sh", "-c", "echo x > " + script}, ReadOnly: []string{dir}, Writable: true})
		if r.Code == 0 {
			l.Errorf("wrote to a read-only directory: %v", r)
		}
	})
}

func TestCaseProtectedPaths(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		for _, dir := range []string{".git/hooks", "other"} {
			if err := os.MkdirAll(filepath.Join(l.root, dir), 0o700); err != nil {
				l.Fatal(err)
			}
		}
		config := filepath.Join(l.root, ".git/config")
		if err := os.WriteFile(config, []byte("[core]"), 0o600); err != nil {
			l.Fatal(err)
		}
		r := l.run(Spec{Writable: true, Protect: []string{".git/hooks", ".git/config", ".devcontainer", "a/b/c"}, Code: []byte(`
import errno, os
def tried(f, *args):
    try:
        f(*args)
        print('did', f.__name__, args)
    except OSError as e:
        if e.errno not in (errno.EROFS, errno.EBUSY, errno.EACCES, errno.EPERM, errno.EXDEV):
            print(f.__name__, args, e)
print(open('.git/config').read())
tried(open, '.git/hooks/pre-commit', 'w')
tried(open, '.git/config', 'w')
tried(os.rename, '.git', 'git2')
tried(os.rename, '.git/hooks', 'hooks2')
tried(os.rename, 'other', '.git/hooks')
tried(os.rmdir, '.git/hooks')
tried(os.unlink, '.git/config')
tried(os.link, '.git/config', 'config2')
os.makedirs('a/b/d')
os.mkdir('a/b/c')
open('.devcontainer', 'w').write('evil')
os.makedirs('.git', exist_ok=True)
open('.git/index', 'w').write('x')
open('new', 'w').write('x')
`)})
		if r.Code != 0 {
			l.Fatal(r)
		}
		if l.level == tool.IsolationFull && r.out != "[core]\n" {
			l.Errorf("the kernel refused less than it should: %v", r)
		}
		for name, want := range map[string]bool{
			".git/config": true, ".git/hooks": true, ".git/index": true, "new": true, "a/b/d": true,
			".git/hooks/pre-commit": false, ".devcontainer": false, "a/b/c": false,
		} {
			if _, err := os.Lstat(filepath.Join(l.root, name)); (err == nil) != want {
				l.Errorf("%s: %v, want it to exist: %t", name, err, want)
			}
		}
		if b, err := os.ReadFile(config); err != nil || string(b) != "[core]" {
			l.Errorf(".git/config holds %q, %v", b, err)
		}
	})
}

// A file system that knows no mapped mounts: the tool's user is the owner
// himself.
func TestCaseOwnershipWithoutMappedMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts are mapped by a privileged worker only")
	}
	inLab(t, onlyFull, func(l *lab) {
		base, err := os.MkdirTemp("", "toolworker-overlay-")
		if err != nil {
			l.Fatal(err)
		}
		l.Cleanup(func() { os.RemoveAll(base) })
		for _, d := range []string{"lower", "upper", "work", "merged"} {
			if err := os.Mkdir(filepath.Join(base, d), 0o755); err != nil {
				l.Fatal(err)
			}
		}
		merged := filepath.Join(base, "merged")
		options := fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", base)
		if err := syscall.Mount("overlay", merged, "overlay", 0, options); err != nil {
			l.Skipf("no overlay file system here: %v", err)
		}
		l.Cleanup(func() { _ = syscall.Unmount(merged, syscall.MNT_DETACH) })
		for uid, name := range map[int]string{0: "of root", 1234: "of somebody"} {
			root := filepath.Join(merged, name)
			for _, err := range []error{os.Mkdir(root, 0o700), os.Chown(root, uid, uid), os.Chmod(base, 0o755)} {
				if err != nil {
					l.Fatal(err)
				}
			}
			l.wantsWritten(root, uid, uid)
			if r := l.run(Spec{Root: root, Argv: []string{"id", "-u"}}); !slices.Contains(r.Sandbox.Missing, missingOwnerMap) {
				l.Errorf("nothing is said of the mapping that this file system does not know: %v", r)
			}
		}
	})
}
