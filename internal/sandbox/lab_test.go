package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

// limits are those of a case that does not say otherwise.
var limits = tool.Limits{
	TimeoutSeconds: 60, MemoryBytes: 512 << 20, PIDs: 64, CPUs: 1, FileSizeBytes: 64 << 20, OpenFiles: 128,
}

// lab is where one case is tried at one level.
type lab struct {
	*testing.T
	runner Runner
	level  tool.Isolation
	root   string
	warm   bool // code finds something ready
}

// inLab runs a case at each of the levels, started cold and warm.
func inLab(t *testing.T, levels []tool.Isolation, try func(l *lab)) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			try(&lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)})
		})
		t.Run(string(level)+" warm", func(t *testing.T) {
			t.Parallel()
			try(&lab{T: t, runner: warmRunner(t, level), level: level, root: newRoot(t), warm: true})
		})
	}
}

var (
	allLevels = []tool.Isolation{tool.IsolationFull, tool.IsolationReduced, tool.IsolationNone}
	confined  = allLevels[:2]
	onlyFull  = allLevels[:1]
)

// levelsEnv names the levels that are tried, where the machine is known to
// refuse the others.
const levelsEnv = "TOOLWORKER_TEST_LEVELS"

// tried reports whether a level is to be tried.
func tried(level tool.Isolation) bool {
	only := os.Getenv(levelsEnv)
	return only == "" || slices.Contains(strings.Split(only, ","), string(level))
}

// newRoot is a project directory whose path has no links and no surprises.
func newRoot(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var shared struct {
	sync.Mutex
	runners map[start]Runner
}

type start struct {
	level tool.Isolation
	warm  Warm
}

// sharedRunner gives the runner of a level that starts everything cold, made once.
func sharedRunner(t *testing.T, level tool.Isolation) Runner {
	t.Helper()
	return runnerOf(t, start{level, WarmOff})
}

// warmRunner gives the one that keeps processes ready.
func warmRunner(t *testing.T, level tool.Isolation) Runner {
	t.Helper()
	r := runnerOf(t, start{level, WarmFork})
	if r.(*runner).warmth == nil {
		t.Skip("nothing is kept ready where only a supervisor holds the limits, and rooms have no /proc")
	}
	return r
}

func runnerOf(t *testing.T, s start) Runner {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if r := shared.runners[s]; r != nil {
		return r
	}
	level := s.level
	if !tried(level) {
		t.Skipf("%s leaves out level %s", levelsEnv, level)
	}
	r, err := New(Config{Level: level, Warm: s.warm, Log: slog.Default()})
	if err != nil {
		t.Fatal(err)
	}
	if shared.runners == nil {
		shared.runners = map[start]Runner{}
	}
	shared.runners[s] = r
	return r
}

// result is what a run gave.
type result struct {
	*Exit
	out, err string
}

func (r result) String() string {
	return fmt.Sprintf("%+v\nstdout: %.2000s\nstderr: %.2000s", *r.Exit, r.out, r.err)
}

// run runs s with what it leaves out filled in.
func (l *lab) run(s Spec) result {
	l.Helper()
	return l.runWithin(l.Context(), s)
}

func (l *lab) runWithin(ctx context.Context, s Spec) result {
	l.Helper()
	var out, errs bytes.Buffer
	s.Project, s.Name = "project", "tool"
	if s.Root == "" {
		s.Root = l.root
	}
	if s.Env == nil {
		s.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}
	}
	if s.Limits == (tool.Limits{}) {
		s.Limits = limits
	}
	s.Stdout, s.Stderr = &out, &errs
	if l.warm && s.Code != nil {
		warmUp(l.T, l.runner, &s)
	}
	e, err := l.runner.Run(ctx, &s)
	if err != nil {
		l.Fatal(err)
	}
	if l.warm && s.Code != nil && !e.Warm {
		l.Error("code started cold")
	}
	return result{e, out.String(), errs.String()}
}

// python runs inline code in a project that may be written.
func (l *lab) python(code string, args ...any) result {
	l.Helper()
	return l.run(Spec{Code: fmt.Appendf(nil, code, args...), Writable: true})
}

// shell runs a script in a project that may be written.
func (l *lab) shell(script string, args ...any) result {
	l.Helper()
	return l.run(Spec{Argv: []string{"sh", "-c", fmt.Sprintf(script, args...)}, Writable: true})
}

// wants fails the case unless the run ended well with this output.
func (l *lab) wants(r result, out string) {
	l.Helper()
	if r.Code != 0 || r.Hit != "" || r.StartError != "" || r.out != out {
		l.Errorf("want exit 0 and %q, got %v", out, r)
	}
}

var marks atomic.Int64

// mark is the argument of a sleep that no other process on the machine has.
func mark() string {
	return fmt.Sprintf("%d.%06d%03d", 100000, os.Getpid(), marks.Add(1))
}

// noSurvivor fails the case if a process with the mark is alive. Who can be
// seen was killed before the answer was out.
func (l *lab) noSurvivor(mark string) {
	l.Helper()
	if pids := processesWith(mark); len(pids) > 0 {
		l.Errorf("processes %v are alive after the answer", pids)
	}
}

// processesWith are the processes that have s in their command line.
func processesWith(s string) []int {
	var pids []int
	procs, _ := os.ReadDir("/proc")
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		b, _ := os.ReadFile("/proc/" + p.Name() + "/cmdline")
		if strings.Contains(string(b), s) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within ten seconds: %s", what)
		}
	}
}
