package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/warm"
	"github.com/toolworker/toolworker/internal/tool"
)

// BenchmarkStart runs print(6*7) side by side: in a bare interpreter, and at
// every level cold and warm, one and eight at a time.
func BenchmarkStart(b *testing.B) {
	python, err := FindInterpreter(b.Context(), "")
	if err != nil {
		b.Fatal(err)
	}
	bare := func() error {
		out, err := exec.Command(python.Path, "-I", "-S", "-c", "print(6*7)").Output()
		if err == nil && string(out) != "42\n" {
			err = fmt.Errorf("output %q", out)
		}
		return err
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("bare/c=%d", n), func(b *testing.B) { measure(b, n, bare) })
	}
	for _, level := range []tool.Isolation{tool.IsolationFull, tool.IsolationReduced, tool.IsolationNone} {
		for _, way := range []Warm{WarmOff, WarmSpawn, WarmFork} {
			r, err := New(Config{Level: level, Warm: way})
			if err != nil {
				b.Log(err)
				continue
			}
			s := benchSpec(b)
			for _, n := range []int{1, 8} {
				b.Run(fmt.Sprintf("%s/%s/c=%d", level, way, n), func(b *testing.B) {
					if way != WarmOff {
						fill(b, r, s, n)
					}
					var cold atomic.Int64
					measure(b, n, func() error { return benchRun(r, s, &cold) })
					b.ReportMetric(float64(cold.Load())/float64(b.N), "cold/op")
				})
			}
			if err := r.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func benchSpec(b *testing.B) *Spec {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	return &Spec{
		Project: "bench", Code: []byte("print(6*7)"), Name: "bench", Root: dir, Limits: limits,
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"},
	}
}

func benchRun(r Runner, s *Spec, cold *atomic.Int64) error {
	own := *s
	var out bytes.Buffer
	own.Stdout = &out
	e, err := r.Run(context.Background(), &own)
	switch {
	case err != nil:
		return err
	case e.Code != 0 || out.String() != "42\n":
		return fmt.Errorf("%+v, output %q", e, out.String())
	case !e.Warm:
		cold.Add(1)
	}
	return nil
}

// fill waits until n runs at a time find something ready.
func fill(b *testing.B, r Runner, s *Spec, n int) {
	w := r.(*runner).warmth
	kind, err := kindOf(s)
	if err != nil {
		b.Fatal(err)
	}
	var leases []*warm.Lease[ready]
	for range n {
		leases = append(leases, w.pool.Acquire(b.Context(), kind, w.starter(s)))
	}
	for _, l := range leases {
		l.Release(warm.Fine)
	}
	for deadline := time.Now().Add(20 * time.Second); w.pool.Ready(kind) < n; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%d of %d are ready", w.pool.Ready(kind), n)
		}
	}
}

// measure calls f b.N times, n at a time, and reports latencies, rate and the
// cpu time of this process and all that it started.
func measure(b *testing.B, n int, f func() error) {
	b.Helper()
	var next atomic.Int64
	taken := make([][]time.Duration, n)
	var wg sync.WaitGroup
	b.ResetTimer()
	start, before := time.Now(), cpuUsed(b)
	for i := range n {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				t := time.Now()
				if err := f(); err != nil {
					b.Error(err)
					return
				}
				taken[i] = append(taken[i], time.Since(t))
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	all := slices.Concat(taken...)
	slices.Sort(all)
	if len(all) == 0 {
		return
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ms(all[len(all)/2]), "median-ms")
	b.ReportMetric(ms(all[len(all)*95/100]), "p95-ms")
	b.ReportMetric(float64(len(all))/elapsed.Seconds(), "per-s")
	b.ReportMetric(ms(cpuUsed(b)-before)/float64(len(all)), "cpu-ms/op")
}

// cpuUsed is what this process used, all that it waited for, and all that is
// below it now with all that those waited for.
func cpuUsed(b *testing.B) time.Duration {
	b.Helper()
	var used time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var ru unix.Rusage
		if err := unix.Getrusage(who, &ru); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	}
	for _, pid := range descendantsOf(os.Getpid()) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, ticks := range f[11:15] { // utime, stime, cutime, cstime
			n, _ := strconv.ParseInt(ticks, 10, 64)
			used += time.Duration(n) * time.Second / 100
		}
	}
	return used
}
