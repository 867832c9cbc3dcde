package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// fake is a directory with the files that a kernel would show.
func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = read(filepath.Join(dir, e.Name()))
	}
	return files
}

func TestLimitsAreWrittenInTheWordsOfEachVersion(t *testing.T) {
	limits := Limits{MemoryBytes: 1 << 20, PIDs: 7, CPUs: 1.5}
	for name, tc := range map[string]struct {
		v2          bool
		controllers []string
		limits      Limits
		files, want map[string]string
	}{
		"version 2": {
			true, []string{Memory, PIDs, CPU}, limits,
			map[string]string{"memory.max": "", "memory.swap.max": "", "pids.max": "", "cpu.max": ""},
			map[string]string{"memory.max": "1048576", "memory.swap.max": "0", "pids.max": "7", "cpu.max": "150000 100000"},
		},
		"version 1 without swap accounting": {
			false, []string{Memory, PIDs, CPU, CPUAcct}, limits,
			map[string]string{"memory.limit_in_bytes": "", "pids.max": "", "cpu.cfs_period_us": "", "cpu.cfs_quota_us": ""},
			map[string]string{"memory.limit_in_bytes": "1048576", "pids.max": "7", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
		},
		"other controllers are left alone": {
			true, []string{PIDs}, limits,
			map[string]string{"pids.max": "", "memory.max": "max"},
			map[string]string{"pids.max": "7", "memory.max": "max"},
		},
		"no limits": {
			true, []string{Memory, PIDs, CPU}, Limits{},
			map[string]string{"memory.max": "max", "pids.max": "max", "cpu.max": "max"},
			map[string]string{"memory.max": "max", "pids.max": "max", "cpu.max": "max"},
		},
		"less cpu than the kernel takes": {
			true, []string{CPU}, Limits{CPUs: 0.000001},
			map[string]string{"cpu.max": ""}, map[string]string{"cpu.max": "1000 100000"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fake(t, tc.files)
			p := groupPart{dir: dir, v2: tc.v2, part: part{controllers: tc.controllers}}
			if err := p.limit(tc.limits); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, contents(t, dir)); d != "" {
				t.Error(d)
			}
		})
	}
	p := groupPart{dir: fake(t, nil), v2: true, part: part{controllers: []string{PIDs}}}
	if err := p.limit(limits); err == nil {
		t.Error("a limit that cannot be written was taken")
	}
}

func TestStats(t *testing.T) {
	for name, tc := range map[string]struct {
		v2    bool
		files map[string]string
		want  Stats
	}{
		"version 2": {true, map[string]string{
			"cpu.stat": "usage_usec 1500\nuser_usec 1\n", "memory.peak": "4096\n", "memory.events": "low 0\noom 2\noom_kill 3\n",
			"pids.peak": "5\n", "pids.events": "max 6\n",
		}, Stats{1500 * time.Microsecond, 4096, 5, 3, 6}},
		"version 1": {false, map[string]string{
			"cpuacct.usage": "1500000\n", "memory.max_usage_in_bytes": "4096\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
			"pids.peak": "5\n", "pids.events": "max 6\n",
		}, Stats{1500 * time.Microsecond, 4096, 5, 3, 6}},
		"old kernel": {true, nil, Stats{}},
		"nonsense":   {true, map[string]string{"cpu.stat": "usage_usec x", "memory.peak": "max", "pids.events": "max"}, Stats{}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &Group{parts: []groupPart{{dir: fake(t, tc.files), v2: tc.v2, part: part{controllers: wanted}}}}
			if got := g.Stats(); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestDelegated(t *testing.T) {
	control := map[string]string{"cgroup.procs": "", "cgroup.controllers": "cpuset cpu memory pids", "cgroup.subtree_control": ""}
	t.Run("own group bounds", func(t *testing.T) {
		files := map[string]string{"cgroup.procs": "", "cgroup.controllers": "memory", "cgroup.subtree_control": "memory"}
		dir := fake(t, files)
		got, c, err := mounted{v2: true, mount: filepath.Dir(dir), own: dir}.delegated()
		if err != nil || got != dir || !slices.Contains(c, Memory) {
			t.Errorf("got %s %v, %v", got, c, err)
		}
	})
	t.Run("the controllers are enabled", func(t *testing.T) {
		dir := fake(t, control)
		if _, _, err := (mounted{v2: true, mount: dir, own: dir}).delegated(); err != nil {
			t.Fatal(err)
		}
		if got := read(filepath.Join(dir, "cgroup.subtree_control")); got != "+cpu +memory +pids" {
			t.Errorf("wrote %q", got)
		}
	})
	t.Run("nothing may be written", func(t *testing.T) {
		if _, _, err := (mounted{v2: true, mount: "/proc", own: "/proc/self"}).delegated(); err == nil {
			t.Error("found a delegated group in /proc")
		}
	})
}

func TestWithoutHierarchiesNothingIsBounded(t *testing.T) {
	m := &Manager{}
	g, err := m.New(Limits{MemoryBytes: 1, PIDs: 1, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	g.Kill()
	if s := g.Stats(); s != (Stats{}) || len(g.Entries()) != 0 {
		t.Errorf("stats %+v, entries %v", s, g.Entries())
	}
	g.Close()
	if _, ok := m.Has(Memory); ok || m.CountsCPU() {
		t.Error("it says that it bounds")
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// TestRealGroup is about whatever this machine offers.
func TestRealGroup(t *testing.T) {
	m := Open()
	if len(m.parts) == 0 {
		t.Skip("no control group may be made here")
	}
	g, err := m.New(Limits{MemoryBytes: 64 << 20, PIDs: 20, CPUs: 1})
	if err != nil {
		t.Fatal(err)
	}
	var dirs []string
	for _, p := range g.parts {
		dirs = append(dirs, p.dir)
	}
	// It ignores what can be ignored and has children.
	cmd := exec.Command("sh", "-c", "trap '' TERM; sleep 1000 & sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range g.Entries() {
		if _, err := unix.Write(int(f.Fd()), []byte(strconv.Itoa(cmd.Process.Pid))); err != nil {
			t.Fatalf("%s: %v", f.Name(), err)
		}
	}
	g.Kill()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v", err)
	}
	if s := g.Stats(); m.CountsCPU() && s.CPU == 0 && s.PIDsPeak == 0 {
		t.Errorf("nothing was measured: %+v", s)
	}
	g.Close()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	for _, d := range dirs {
		if _, err := os.Stat(d); err == nil {
			t.Errorf("%s is left", d)
		}
	}
}

func TestSweepRemovesTheDeadOnly(t *testing.T) {
	parent := t.TempDir()
	ns := strconv.FormatUint(pidNamespace(), 10)
	self := strconv.Itoa(os.Getpid())
	keep := []string{
		prefix + ns + "-" + self + "-" + startTime(os.Getpid()) + "-1", // alive
		prefix + "1-2-3-4",           // of another pid namespace
		prefix + ns + "-x-y-1",       // not ours
		"other-" + ns + "-999999999", // not ours
	}
	gone := []string{
		prefix + ns + "-" + self + "-1-1",    // the number was used again
		prefix + ns + "-999999999-12345-999", // no such process
	}
	for _, d := range append(slices.Clone(keep), gone...) {
		if err := os.MkdirAll(filepath.Join(parent, d, "r1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent)
	for _, d := range keep {
		if _, err := os.Stat(filepath.Join(parent, d, "r1")); err != nil {
			t.Errorf("%s was removed", d)
		}
	}
	for _, d := range gone {
		if _, err := os.Stat(filepath.Join(parent, d)); err == nil {
			t.Errorf("%s is left", d)
		}
	}
	sweep("/no/such/directory")
}
