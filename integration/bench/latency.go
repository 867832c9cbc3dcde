package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// latency is the time from before the request is published until its result
// is seen, with one request in the system.
func latency(ctx context.Context, b *bench) error {
	n := b.n(3_000)
	return withServer(ctx, func(c *queue.Client) error {
		floor, err := rawLatency(ctx, c, n)
		if err != nil {
			return fmt.Errorf("raw loop: %w", err)
		}
		ours, err := workerLatency(ctx, c, n)
		if err != nil {
			return fmt.Errorf("worker: %w", err)
		}
		fmt.Fprintf(b.out, "%8s %10s %10s\n", "", "median ms", "p95 ms")
		fmt.Fprintf(b.out, "%8s %10.3f %10.3f\n", "raw", ms(quantile(floor, 0.5)), ms(quantile(floor, 0.95)))
		fmt.Fprintf(b.out, "%8s %10.3f %10.3f\n", "worker", ms(quantile(ours, 0.5)), ms(quantile(ours, 0.95)))
		fmt.Fprintf(b.out, "%8s %10.3f\n", "added", ms(quantile(ours, 0.5)-quantile(floor, 0.5)))
		return nil
	})
}

func rawLatency(ctx context.Context, c *queue.Client, n int) ([]time.Duration, error) {
	m, _, err := request("p")
	if err != nil {
		return nil, err
	}
	r, err := newRaw(ctx, c.Conn(), m.Data)
	if err != nil {
		return nil, err
	}
	loop, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for loop.Err() == nil {
			batch, err := r.cons.Fetch(1, jetstream.FetchMaxWait(500*time.Millisecond))
			if err != nil {
				done <- err
				return
			}
			for m := range batch.Messages() {
				if err := r.settle(ctx, m); err != nil {
					done <- err
					return
				}
			}
		}
		done <- nil
	}()
	out, err := ask(ctx, c, n, "raw.result.*", func() (*nats.Msg, error) {
		return &nats.Msg{Subject: "raw.request", Data: m.Data}, nil
	})
	cancel()
	if lerr := <-done; err == nil {
		err = lerr
	}
	return out, err
}

func workerLatency(ctx context.Context, c *queue.Client, n int) ([]time.Duration, error) {
	stop, err := serve(ctx, c, 1, backend(func(context.Context, *tool.Request) {}))
	if err != nil {
		return nil, err
	}
	out, err := ask(ctx, c, n, "tools.result.p.*", func() (*nats.Msg, error) {
		m, _, err := request("p")
		return m, err
	})
	if serr := stop(); err == nil {
		err = serr
	}
	return out, err
}

// ask publishes requests one after another and waits for the answer to each.
// The first tenth warms up and is not counted.
func ask(ctx context.Context, c *queue.Client, n int, answers string, msg func() (*nats.Msg, error)) ([]time.Duration, error) {
	sub, err := c.Conn().SubscribeSync(answers)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	var out []time.Duration
	for i := range n + n/10 {
		m, err := msg()
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		if _, err := c.JetStream().PublishMsg(ctx, m); err != nil {
			return nil, fmt.Errorf("publish: %w", err)
		}
		if _, err := sub.NextMsgWithContext(ctx); err != nil {
			return nil, fmt.Errorf("wait for the answer: %w", err)
		}
		if i >= n/10 {
			out = append(out, time.Since(begin))
		}
	}
	return out, nil
}
