package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// throughput alternates both sides, so that a noisy neighbour hits both.
func throughput(ctx context.Context, b *bench) error {
	const rounds = 3
	fmt.Fprintf(b.out, "%12s %12s %12s %8s\n", "concurrency", "raw/s", "worker/s", "ratio")
	for _, c := range []struct{ slots, n int }{{1, 3_000}, {8, 12_000}, {64, 40_000}, {256, 40_000}} {
		n := b.n(c.n)
		var floor, ours []float64
		for range rounds {
			err := withServer(ctx, func(cl *queue.Client) error {
				took, err := rawThroughput(ctx, cl, n, c.slots)
				floor = append(floor, float64(n)/took.Seconds())
				return err
			})
			if err != nil {
				return fmt.Errorf("raw loop: %w", err)
			}
			err = withServer(ctx, func(cl *queue.Client) error {
				took, err := workerThroughput(ctx, cl, n, c.slots)
				ours = append(ours, float64(n)/took.Seconds())
				return err
			})
			if err != nil {
				return fmt.Errorf("worker: %w", err)
			}
		}
		f, o := median(floor), median(ours)
		fmt.Fprintf(b.out, "%12d %12.0f %12.0f %7.0f%%\n", c.slots, f, o, 100*o/f)
	}
	return nil
}

func rawThroughput(ctx context.Context, c *queue.Client, n, slots int) (time.Duration, error) {
	m, _, err := request("p")
	if err != nil {
		return 0, err
	}
	r, err := newRaw(ctx, c.Conn(), m.Data)
	if err != nil {
		return 0, err
	}
	if err := r.fill(ctx, n); err != nil {
		return 0, err
	}
	return r.drain(ctx, n, slots)
}

// workerThroughput counts settled requests: the time ends when the queue is empty.
func workerThroughput(ctx context.Context, c *queue.Client, n, slots int) (time.Duration, error) {
	if err := enqueue(ctx, c, "p", n); err != nil {
		return 0, err
	}
	var left atomic.Int64
	left.Store(int64(n))
	last := make(chan struct{})
	begin := time.Now()
	stop, err := serve(ctx, c, slots, backend(func(context.Context, *tool.Request) {
		if left.Add(-1) == 0 {
			close(last)
		}
	}))
	if err != nil {
		return 0, err
	}
	select {
	case <-last:
	case <-ctx.Done():
	}
	// The drain ends when the last one is acknowledged.
	if err := stop(); err != nil {
		return 0, err
	}
	return time.Since(begin), ctx.Err()
}
