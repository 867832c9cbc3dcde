package python

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What plain Python does between the last line of a script and its exit.
func TestExit(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want outcome
	}{
		"threads":         {"import threading, time\ndef f():\n  time.sleep(0.05)\n  print('thread')\nthreading.Thread(target=f).start()\nprint('main')", outcome{output: "main\nthread\n"}},
		"daemon":          {"import threading, time\nthreading.Thread(target=time.sleep, args=(1000,), daemon=True).start()\nf = open('x', 'w')\nprint('main')", outcome{output: "main\n"}},
		"pool":            {"import concurrent.futures\np = concurrent.futures.ThreadPoolExecutor()\np.submit(print, 'work')", outcome{output: "work\n"}},
		"atexit":          {"import atexit\natexit.register(print, 'one')\natexit.register(print, 'two')\nprint('main')", outcome{output: "main\ntwo\none\n"}},
		"order":           {"import atexit, threading\natexit.register(print, 'atexit')\nthreading.Thread(target=print, args=('thread',)).start()", outcome{output: "thread\natexit\n"}},
		"after a failure": {"import atexit\natexit.register(print, 'atexit')\nraise SystemExit(3)", outcome{output: "atexit\n", exit: 3}},
		"finalizer":       {"class A:\n  def __del__(self): print('del')\na = A()\nb = [a]; b.append(b)\nprint('main')", outcome{output: "main\ndel\n"}},
		"open file":       {"import os\nr, w = os.pipe()\nf = os.fdopen(w, 'w')\nf.write('written')\nclass A:\n  def __del__(self): print(os.read(r, 100))\n_a = A()\ndel w\nf = [f]\nf[0].flush()", outcome{output: "b'written'\n"}},
		"tempfile":        {"import os, tempfile\nd = tempfile.TemporaryDirectory(dir='.')\nprint(os.path.isdir(d.name))\nd.cleanup()", outcome{output: "True\n"}},
		"logging":         {"import logging\nlogging.basicConfig()\nlogging.warning('w')", outcome{output: "WARNING:root:w\n"}},
		"interrupted":     {"import atexit\natexit.register(print, 'atexit')\nimport os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGTERM)", outcome{exit: 128 + 15}},
		"fork on":         {"import os\nresult = 1\npid = os.fork()\nif pid: os.waitpid(pid, 0)", outcome{value: "1"}},
		"trace":           {"import sys\nsys.settrace(lambda *a: print(a[0].f_code.co_name))", outcome{}},
		"fork":            {"import os\nprint('once', flush=True)\nif os.fork() == 0: raise SystemExit(9)\nprint(os.wait()[1] >> 8)", outcome{output: "once\n9\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			got.cpu = 0
			if got != c.want {
				t.Errorf("code %q\ngot  %+v\nwant %+v", c.code, got, c.want)
			}
		})
	}
}

func TestExitFunctionFails(t *testing.T) {
	got := runCold(t, &Request{Name: "tool", Code: []byte("import atexit\n@atexit.register\ndef f(): 1/0\nresult = 1")})
	if got.exit != 0 || got.value != "1" || !strings.Contains(got.output, "ZeroDivisionError") {
		t.Errorf("got %+v", got)
	}
}

// A file that the code left open is on disk when the process has ended.
func TestOpenFilesAreWritten(t *testing.T) {
	for _, how := range []string{
		"f = open(path, 'w'); f.write('all')",
		"f = open(path, 'wb'); f.write(b'all')",
		"import sys; sys.mine = open(path, 'w'); sys.mine.write('all')",
		"f = open(path, 'w'); f.write('all'); g = [f]; g.append(g); del f",
		"f = open(path, 'w'); f.write('all'); raise SystemExit(0)",
		"f = open(path, 'w'); f.write('all')\ntry: 1/0\nexcept Exception as e: keep = e",
		"import threading, time; f = open(path, 'w'); f.write('all'); threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()",
	} {
		path := t.TempDir() + "/file"
		got := runCold(t, &Request{Name: "tool", Code: []byte(fmt.Sprintf("path = %q\n%s", path, how))})
		if got.exit != 0 || got.output != "" {
			t.Errorf("%s: %+v", how, got)
		}
		read := runCold(t, &Request{Name: "tool", Code: []byte(fmt.Sprintf("print(open(%q).read(), end='')", path))})
		if read.output != "all" {
			t.Errorf("%s: the file holds %q", how, read.output)
		}
	}
}

func TestLimits(t *testing.T) {
	got := runCold(t, &Request{
		Name: "tool",
		Code: []byte("import resource\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE))\n" +
			"try:\n  while True: open('/dev/null', closefd=False) if 0 else __import__('os').dup(1)\nexcept OSError as e: print(e)"),
		Limits: []Rlimit{{unix.RLIMIT_NOFILE, 64, 64}, {unix.RLIMIT_CORE, 0, 0}},
	})
	if got.exit != 0 || !strings.HasPrefix(got.output, "(64, 64) (0, 0)\n") || !strings.Contains(got.output, "Too many open files") {
		t.Errorf("got %+v", got)
	}
}
