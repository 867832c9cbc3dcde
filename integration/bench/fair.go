package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// fair shows how long a single request waits behind another project's backlog.
func fair(ctx context.Context, b *bench) error {
	const slots = 4
	fmt.Fprintf(b.out, "%12s %12s %12s %12s\n", "tool ms", "median ms", "p95 ms", "max ms")
	for _, run := range []time.Duration{10 * time.Millisecond, 100 * time.Millisecond} {
		err := withServer(ctx, func(c *queue.Client) error {
			if err := enqueue(ctx, c, "busy", b.n(100_000)); err != nil {
				return err
			}
			began := make(chan time.Time, 1)
			stop, err := serve(ctx, c, slots, backend(func(ctx context.Context, r *tool.Request) {
				if r.Project != "busy" {
					began <- time.Now()
				}
				select {
				case <-time.After(run):
				case <-ctx.Done():
				}
			}))
			if err != nil {
				return err
			}
			var waits []time.Duration
			for i := range 60 {
				// Half of the projects are new, half are known.
				m, _, err := request(fmt.Sprintf("single-%d", i/2))
				if err != nil {
					return err
				}
				begin := time.Now()
				if _, err := c.JetStream().PublishMsg(ctx, m); err != nil {
					return err
				}
				select {
				case t := <-began:
					waits = append(waits, t.Sub(begin))
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			fmt.Fprintf(b.out, "%12.0f %12.1f %12.1f %12.1f\n", ms(run), ms(quantile(waits, 0.5)), ms(quantile(waits, 0.95)), ms(quantile(waits, 1)))
			return stop()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
