package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc/pool"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	largeWriters = 64
	largeBytes   = 50 << 20
	largeGoal    = 200 // MiB resident
)

// floods writes as much as the cap of one stream, in lines, and no byte more.
const floods = `kind: Tool
name: floods
command: [sh, -c, "yes 0123456789abcde | head -c 52428800"]
limits: {timeout_seconds: 600}
`

// large lets tools write 50 MiB each, all at once, through a worker process
// and its sandbox, and looks at how large that process ever became.
func large(ctx context.Context, b *bench) error {
	n := b.n(largeWriters)
	return withServer(ctx, func(c *queue.Client) error {
		return withWorker(c, floods, []string{"--concurrency", fmt.Sprint(largeWriters)}, func(pid int) error {
			// One before shows what the worker is without them.
			if err := flood(ctx, c); err != nil {
				return err
			}
			before, err := statusMiB(pid, "VmHWM")
			if err != nil {
				return err
			}
			begin := time.Now()
			all := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
			for range n {
				all.Go(func(ctx context.Context) error { return flood(ctx, c) })
			}
			if err := all.Wait(); err != nil {
				return err
			}
			took := time.Since(begin)
			peak, err := statusMiB(pid, "VmHWM")
			if err != nil {
				return err
			}
			fmt.Fprintf(b.out, "%10s %10s %10s %12s %12s\n", "tools", "MiB each", "seconds", "peak of 1", "peak MiB")
			fmt.Fprintf(b.out, "%10d %10d %10.1f %12.1f %12.1f\n", n, largeBytes>>20, took.Seconds(), before, peak)
			if peak > largeGoal {
				fmt.Fprintf(b.out, "above the goal of %d MiB\n", largeGoal)
			}
			return nil
		})
	})
}

// flood asks for one such tool and checks that everything it wrote was kept.
func flood(ctx context.Context, c *queue.Client) error {
	id := uuid.Must(uuid.NewV7()).String()
	r := &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: "/bench", Time: time.Now().UTC(), CorrelationID: id},
		Project:  "p", Tool: "floods",
	}
	m, err := event.EncodeRequest(r, c.Names.Prefix())
	if err != nil {
		return err
	}
	if _, err := c.Publish(ctx, "p", id, m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	answer, err := c.WaitResult(ctx, "p", id)
	if err != nil {
		return err
	}
	doc, err := event.DecodeResult(answer)
	if err != nil {
		return err
	}
	if !doc.Success || doc.Truncated || doc.Refs["stdout"].SizeBytes != largeBytes {
		return fmt.Errorf("request %s: expected %d bytes of output: %.500s", id, largeBytes, doc.Raw)
	}
	return nil
}
