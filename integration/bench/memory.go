package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// memory works off 200,000 requests of one project in a worker's own process
// size: the requests are queued before, so that only the worker is seen.
func memory(ctx context.Context, b *bench) error {
	n := b.n(200_000)
	return withServer(ctx, func(c *queue.Client) error {
		fmt.Fprintf(b.out, "%12s %14s\n", "settled", "resident MiB")
		var settled atomic.Int64
		mark := make(chan int64, 1)
		step := int64(max(1, n/8))
		// A subject takes 100,000 requests at most: two projects share them.
		for _, project := range []string{"p", "q"} {
			if err := enqueue(ctx, c, project, n/2); err != nil {
				return err
			}
		}
		stop, err := serve(ctx, c, 64, backend(func(context.Context, *tool.Request) {
			if k := settled.Add(1); k%step == 0 {
				mark <- k
			}
		}))
		if err != nil {
			return err
		}
		var first, peak float64
		for range 8 {
			select {
			case k := <-mark:
				mib, err := statusMiB(os.Getpid(), "VmRSS")
				if err != nil {
					return err
				}
				if first == 0 {
					first = mib
				}
				peak = max(peak, mib)
				fmt.Fprintf(b.out, "%12d %14.1f\n", k, mib)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		fmt.Fprintf(b.out, "%12s %14.1f\n", "grown", peak-first)
		return stop()
	})
}

// statusMiB is a size of a process as the kernel counts it: VmRSS is what is
// resident now, VmHWM the most that ever was.
func statusMiB(pid int, name string) (float64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), name+":"); ok {
			var kib float64
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				return 0, fmt.Errorf("read %s %q: %w", name, rest, err)
			}
			return kib / 1024, nil
		}
	}
	return 0, fmt.Errorf("%s is not in the status of process %d", name, pid)
}
