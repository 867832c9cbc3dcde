package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// soakEnv is how many executions TestSoak makes at each level, sixteen at a
// time. Without it there are few, eight at a time.
const soakEnv = "TOOLWORKER_SOAK"

// hostile are executions that try to leave something behind.
var hostile = []string{
	"import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
	"b = []\nwhile True: b.append(bytearray(16 << 20))",
	"import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(1000)\n  os._exit(0)\nos._exit(3)",
	"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
	"import signal\nfor s in range(1, 65):\n  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nwhile True: pass",
	"import os\nd = os.environ.get('TMPDIR', '/tmp')\nfor n in range(100000): open('%s/%d' % (d, n), 'w').close()",
	"import os\nfds = []\nwhile True: fds.append(os.dup(1))",
	"import sys\nwhile True: sys.stdout.write('x' * 65536)",
	"import os, time\nos.closerange(0, 256)\ntime.sleep(1000)",
	"import os\nwhile True: os.write(4, b'v\\xff\\xff\\xff\\xffgarbage')",
	"import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(1000,)).start()",
	"def f(): f()\nimport sys\nsys.setrecursionlimit(1 << 30)\nf()",
	"import socket\ns = [socket.socketpair() for _ in range(1000)]",
	"import os\nos.mkdir('d'); os.chdir('d')\nwhile True: os.mkdir('d'); os.chdir('d')",
}

// forking are those among them that need a bound on processes.
func forking(code string) bool {
	return strings.Contains(code, "fork") || strings.Contains(code, "Thread(")
}

func TestSoak(t *testing.T) {
	n, width := 100, 8
	if s := os.Getenv(soakEnv); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", soakEnv, err)
		}
		width = 16
	}
	for _, level := range allLevels {
		if !tried(level) {
			continue
		}
		t.Run(string(level), func(t *testing.T) { soak(t, level, n, width) })
	}
}

func soak(t *testing.T, level tool.Isolation, n, width int) {
	own := newRoot(t)
	t.Setenv("TMPDIR", own) // others on the machine have theirs
	roots := []string{newRoot(t), newRoot(t), newRoot(t)}
	before := left(t, own)
	r, err := New(Config{Level: level})
	if err != nil {
		t.Fatal(err)
	}
	var next, warm, resident atomic.Int64
	var wg sync.WaitGroup
	for range width {
		wg.Go(func() {
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				if soakOnce(t, r, level, roots[i%len(roots)], i) {
					warm.Add(1)
				}
				if i == n/4 {
					resident.Store(residentBytes(t))
				}
			}
		})
	}
	wg.Wait()
	grown := residentBytes(t) - resident.Load()
	t.Logf("%d of %d executions started warm, resident memory grew by %d KiB over the last three quarters", warm.Load(), n, grown>>10)
	if grown > 32<<20 {
		t.Errorf("resident memory grew by %d bytes", grown)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		runtime.GC() // files that nobody closed would be closed here: they count before
		after := left(t, own)
		if !after.exceeds(before) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left behind:\nbefore %+v\nafter  %+v", before, after)
		}
	}
}

// soakOnce makes one execution, hostile every tenth time.
func soakOnce(t *testing.T, r Runner, level tool.Isolation, root string, i int) (warm bool) {
	code, want := fmt.Sprintf("print(%d)", i), fmt.Sprintln(i)
	l := limits
	if i%10 == 0 {
		code, want = hostile[i/10%len(hostile)], ""
		if level == tool.IsolationNone && forking(code) {
			code = hostile[3] // nothing holds it there, on some machines
		}
		l.TimeoutSeconds, l.MemoryBytes = 0.3, 128<<20
	}
	var out bytes.Buffer
	e, err := r.Run(context.Background(), &Spec{
		Project: filepath.Base(root), Root: root, Code: []byte(code), Name: "soak", Limits: l, Stdout: &bounded{max: 1 << 20, w: &out},
		Env: []string{"PATH=/usr/bin:/bin"},
	})
	if err != nil {
		t.Errorf("%.60q: %v", code, err)
		return false
	}
	if want != "" && (e.Code != 0 || out.String() != want) {
		t.Errorf("%q: %+v, output %q", code, e, out.String())
	}
	return e.Warm
}

// bounded keeps the beginning of what it is given.
type bounded struct {
	max int
	w   *bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	b.w.Write(p[:min(len(p), max(0, b.max-b.w.Len()))])
	return len(p), nil
}

// leftovers counts what an execution could leave behind.
type leftovers struct {
	processes, mounts, groups, descriptors, temporary int
}

// exceeds reports whether there is more of anything than before. There may be
// less: what other tests keep ready comes and goes.
func (l leftovers) exceeds(before leftovers) bool {
	return l.processes > before.processes || l.mounts > before.mounts || l.groups > before.groups ||
		l.descriptors > before.descriptors || l.temporary > before.temporary
}

func left(t *testing.T, own string) leftovers {
	t.Helper()
	count := func(pattern string) int {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	groups := 0
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "toolworker-") {
			// Those of other test processes on the machine come and go.
			if f := strings.Split(d.Name(), "-"); len(f) > 2 && f[2] == strconv.Itoa(os.Getpid()) {
				below, _ := os.ReadDir(path)
				for _, b := range below {
					if b.IsDir() {
						groups++
					}
				}
			}
		}
		return nil
	})
	return leftovers{
		processes: len(descendantsOf(os.Getpid())), mounts: bytes.Count(mounts, []byte(filepath.Dir(own))), groups: groups,
		descriptors: count("/proc/self/fd/*"), temporary: count(own + "/*"),
	}
}

// descendantsOf are the processes below one, those of slots included. What
// lost its parent came to the shared runners' supervisors or to init and has
// its own case.
func descendantsOf(pid int) []int {
	parents := map[int][]int{}
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		child, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if len(f) > 1 {
			parent, _ := strconv.Atoi(f[1])
			parents[parent] = append(parents[parent], child)
		}
	}
	all := parents[pid]
	for i := 0; i < len(all); i++ {
		all = append(all, parents[all[i]]...)
	}
	return all
}

func residentBytes(t *testing.T) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Error(err)
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
