package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// fixture is a runner of commands and a directory to run them in.
type fixture struct {
	*commands
	root string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	c := newCommands(executable(t))
	t.Cleanup(func() { _ = c.Close() })
	return &fixture{c, t.TempDir()}
}

func (f *fixture) sh(t *testing.T, s sandbox.Spec, script string) (x *sandbox.Exit, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	var out, errs bytes.Buffer
	s.Argv, s.Root, s.Stdout, s.Stderr = []string{"sh", "-c", script}, f.root, &out, &errs
	s.Env = append(s.Env, "PATH=/usr/bin:/bin", "LANG=C.UTF-8")
	x, err := f.Run(ctx, &s)
	if err != nil {
		t.Fatal(err)
	}
	return x, out.String(), errs.String()
}

func TestCommandRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	x, out, errs := f.sh(t, sandbox.Spec{Input: []byte(`{"a":1}`)}, "cat; pwd; echo oops >&2; exit 7")
	if x.Code != 7 || x.Signal != "" || out != `{"a":1}`+f.root+"\n" || errs != "oops\n" {
		t.Errorf("%+v, stdout %q, stderr %q", x, out, errs)
	}
	if x.Duration <= 0 || x.Usage.MaxRSSBytes <= 0 {
		t.Errorf("duration %v, usage %+v", x.Duration, x.Usage)
	}
}

func TestCommandEndings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for script, want := range map[string]sandbox.Exit{
		"exit 44":                {Code: 44},
		"kill -SEGV $$":          {Code: 139, Signal: "SIGSEGV"},
		"kill -KILL $$":          {Code: 137, Signal: "SIGKILL"},
		"kill -ABRT $$":          {Code: 134, Signal: "SIGABRT"},
		"ulimit -c; exit 0":      {},
		"exec 1>&- 2>&-; exit 3": {Code: 3},
	} {
		x, _, _ := f.sh(t, sandbox.Spec{}, script)
		if x.Code != want.Code || x.Signal != want.Signal || x.Hit != "" || x.TimedOut {
			t.Errorf("%s: %+v", script, x)
		}
	}
}

func TestCommandNotStarted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	plain := filepath.Join(f.root, "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"no-such-command": "no-such-command: command not found",
		plain:             plain + ": permission denied",
	} {
		x, err := f.Run(t.Context(), &sandbox.Spec{Argv: []string{name}, Root: f.root, Env: []string{"PATH=/usr/bin"}})
		if err != nil || x.StartError != want || x.Code != -1 {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

func TestNothingSurvivesACommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, script := range map[string]string{
		"background":       "sleep 1000 & echo $!",
		"own session":      "setsid sleep 1000 & echo $!",
		"double fork":      "(setsid sh -c 'sleep 1000 & echo $!' &) ; sleep 0.1",
		"ignores signals":  "trap '' TERM INT HUP; setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' & echo $!",
		"keeps the output": "setsid sh -c 'exec sleep 1000' & echo $!",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, out, _ := f.sh(t, sandbox.Spec{}, script)
			if x.Code != 0 {
				t.Fatalf("%+v", x)
			}
			for pid := range strings.FieldsSeq(out) {
				if _, err := os.Stat("/proc/" + pid); err == nil {
					t.Errorf("process %s survives", pid)
				}
			}
		})
	}
}

func TestTimeoutEndsTheTree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := sandbox.Spec{Limits: tool.Limits{TimeoutSeconds: 0.2}}
	x, out, _ := f.sh(t, spec, "trap '' TERM INT; setsid sleep 1000 & echo $!; while :; do :; done")
	if !x.TimedOut || x.Signal != "SIGKILL" || x.Code != 137 {
		t.Errorf("%+v", x)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(out)); err == nil {
		t.Error("the tree survives")
	}
}

func TestCancelEndsTheTree(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	started := &notify{wrote: make(chan struct{})}
	go func() {
		<-started.wrote
		cancel()
	}()
	x, err := f.Run(ctx, &sandbox.Spec{Argv: []string{"sh", "-c", "echo; sleep 1000"}, Root: f.root, Stdout: started})
	if err != nil || x.Signal != "SIGKILL" || x.TimedOut {
		t.Errorf("%+v, %v", x, err)
	}
}

type notify struct {
	once  sync.Once
	wrote chan struct{}
}

func (n *notify) Write(p []byte) (int, error) {
	n.once.Do(func() { close(n.wrote) })
	return len(p), nil
}

func TestForkBombIsEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := sandbox.Spec{Limits: tool.Limits{PIDs: 20, TimeoutSeconds: deadline.Seconds()}}
	x, _, _ := f.sh(t, spec, "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done; wait")
	if x.Hit != tool.TooManyProcesses || x.TimedOut {
		t.Errorf("%+v", x)
	}
}

func TestInputNobodyReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if x, _, _ := f.sh(t, sandbox.Spec{Input: make([]byte, 8<<20)}, "exit 0"); x.Code != 0 {
		t.Errorf("%+v", x)
	}
	x, out, _ := f.sh(t, sandbox.Spec{Input: make([]byte, 8<<20)}, "wc -c")
	if x.Code != 0 || strings.TrimSpace(out) != "8388608" {
		t.Errorf("%+v, %q", x, out)
	}
}

func TestCommandSeesOnlyItsEnvironment(t *testing.T) {
	f := newFixture(t)
	t.Setenv("TOOLWORKER_TEST_SECRET", "x")
	_, out, _ := f.sh(t, sandbox.Spec{Env: []string{"A=b"}}, "env")
	for line := range strings.Lines(out) {
		switch name, _, _ := strings.Cut(line, "="); name {
		case "A", "PATH", "LANG", "TMPDIR", "PWD", "_", "SHLVL", "OLDPWD":
		default:
			t.Errorf("environment has %s", line)
		}
	}
}

func TestSlotsAreReused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var first string
	for range 5 {
		_, out, _ := f.sh(t, sandbox.Spec{}, "echo $PPID")
		if first == "" {
			first = out
		}
		if out != first {
			t.Errorf("parent %q, then %q", first, out)
		}
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 10 {
				in := bytes.Repeat([]byte{'a' + byte(i)}, 1000)
				x, out, _ := f.sh(t, sandbox.Spec{Input: in}, "cat")
				if x.Code != 0 || out != string(in) {
					t.Errorf("%+v, %d bytes", x, len(out))
				}
			}
		})
	}
	wg.Wait()
}

func TestEndedSlotIsAViolation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.landlock = false // or the kernel would refuse it
	x, _, _ := f.sh(t, sandbox.Spec{Limits: tool.Limits{TimeoutSeconds: deadline.Seconds()}}, "kill -KILL $PPID; sleep 1000")
	if x.Hit != tool.SandboxViolation {
		t.Errorf("%+v", x)
	}
	if x, out, _ := f.sh(t, sandbox.Spec{}, "echo ok"); x.Code != 0 || out != "ok\n" {
		t.Errorf("afterwards: %+v, %q", x, out)
	}
}

func TestTemporaryFilesAreOnesOwn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	_, out, errs := f.sh(t, sandbox.Spec{Writable: true}, `echo x > $TMPDIR/a && mkdir $TMPDIR/d && chmod 0 $TMPDIR/d; echo $TMPDIR`)
	dir := strings.TrimSpace(out)
	if dir == "" || errs != "" {
		t.Fatalf("no directory: %q", errs)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func BenchmarkCommand(b *testing.B) {
	path, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	c := newCommands(path)
	defer c.Close()
	root := b.TempDir()
	spec := func() *sandbox.Spec {
		return &sandbox.Spec{Argv: []string{"/bin/true"}, Root: root, Env: []string{"PATH=/bin"}}
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if x, err := c.Run(b.Context(), spec()); err != nil || x.Code != 0 {
				b.Fatal(x, err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.SetParallelism(4)
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				if x, err := c.Run(b.Context(), spec()); err != nil || x.Code != 0 {
					b.Error(x, err)
				}
			}
		})
	})
}
