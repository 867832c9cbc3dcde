package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	answer     = "print(6*7)"
	answerText = "42\n"
)

// start is one way to run answer.
type start struct {
	name string
	run  func(ctx context.Context) (warm bool, err error)
}

// starts runs the same line of Python in a bare interpreter, in bubblewrap,
// and in the sandbox at level full: cold, and with processes kept ready.
func starts(ctx context.Context, b *bench) error {
	python, err := sandbox.FindInterpreter(ctx, "")
	if err != nil {
		return err
	}
	ways := []start{{"bare python3", command(python.Path, "-I", "-S", "-c", answer)}}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		ways = append(ways, start{"bubblewrap", command(bwrap, "--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib",
			"--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
			"--unshare-all", "--die-with-parent", python.Path, "-I", "-S", "-c", answer)})
	} else {
		fmt.Fprintln(b.out, "bubblewrap is not there: left out")
	}
	root, err := os.MkdirTemp("", "toolworker-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return err
	}
	for _, warm := range []sandbox.Warm{sandbox.WarmOff, sandbox.WarmSpawn, sandbox.WarmFork} {
		runner, err := sandbox.New(sandbox.Config{Level: tool.IsolationFull, Warm: warm})
		if err != nil {
			return err
		}
		defer runner.Close()
		ways = append(ways, start{"full, " + string(warm), confined(runner, root)})
	}
	fmt.Fprintf(b.out, "%-14s %3s %10s %10s %10s %10s %8s\n", "", "c", "median ms", "p95 ms", "per second", "cpu ms", "warm")
	for _, slots := range []int{1, 8} {
		for _, w := range ways {
			if err := measure(ctx, b, w, slots, b.n(1_500)); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
		}
	}
	return nil
}

func command(argv ...string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
		if err == nil && string(out) != answerText {
			err = fmt.Errorf("output %q", out)
		}
		return false, err
	}
}

func confined(r sandbox.Runner, root string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var out bytes.Buffer
		e, err := r.Run(ctx, &sandbox.Spec{
			Project: "bench", Code: []byte(answer), Name: "bench", Input: []byte("{}"), Root: root, Stdout: &out,
			Env:    []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"},
			Limits: tool.Limits{TimeoutSeconds: 30, MemoryBytes: 512 << 20, CPUs: 1, PIDs: 128, FileSizeBytes: 1 << 30, OpenFiles: 256},
		})
		if err == nil && (e.Code != 0 || out.String() != answerText) {
			err = fmt.Errorf("%+v, output %q", e, out.String())
		}
		return err == nil && e.Warm, err
	}
}

// measure runs w n times, slots at a time, after a tenth of it to warm up.
func measure(ctx context.Context, b *bench, w start, slots, n int) error {
	var (
		mu    sync.Mutex
		taken []time.Duration
		warm  int
	)
	round := func(n int, count bool) error {
		var next atomic.Int64
		var wg sync.WaitGroup
		failed := make(chan error, slots)
		for range slots {
			wg.Go(func() {
				for next.Add(1) <= int64(n) && ctx.Err() == nil {
					begin := time.Now()
					was, err := w.run(ctx)
					if err != nil {
						failed <- err
						return
					}
					if !count {
						continue
					}
					mu.Lock()
					taken = append(taken, time.Since(begin))
					if was {
						warm++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		close(failed)
		return <-failed
	}
	if err := round(max(50, n/10), false); err != nil {
		return err
	}
	begin, before := time.Now(), machineCPU()
	if err := round(n, true); err != nil {
		return err
	}
	elapsed, used := time.Since(begin), machineCPU()-before
	if len(taken) == 0 {
		return ctx.Err()
	}
	fmt.Fprintf(b.out, "%-14s %3d %10.2f %10.2f %10.0f %10.2f %7.0f%%\n", w.name, slots, ms(quantile(taken, 0.5)), ms(quantile(taken, 0.95)),
		float64(len(taken))/elapsed.Seconds(), ms(used)/float64(len(taken)), 100*float64(warm)/float64(len(taken)))
	return nil
}

// machineCPU is what all processors of the machine spent working since it
// started: fork servers and their children are nobody's waited-for children.
func machineCPU() time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	var user, nice, system, idle, iowait, irq, softirq int64
	if _, err := fmt.Sscanf(string(line), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq, &softirq); err != nil {
		return 0
	}
	return time.Duration(user+nice+system+irq+softirq) * time.Second / clockTicks
}

// clockTicks is USER_HZ, which Linux shows to programs as 100 everywhere.
const clockTicks = 100
