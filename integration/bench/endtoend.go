package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// endToEnd is the time from the publishing of an inline print(1) until its
// result is seen: a server, a worker and a planner, each in its own process.
func endToEnd(ctx context.Context, b *bench) error {
	return withServer(ctx, func(c *queue.Client) error {
		return withWorker(c, "", nil, func(int) error {
			var taken []time.Duration
			n := b.n(1_000)
			for i := range n + max(100, n/10) {
				begin := time.Now()
				if err := once(ctx, c); err != nil {
					return err
				}
				if i >= max(100, n/10) {
					taken = append(taken, time.Since(begin))
				}
			}
			fmt.Fprintf(b.out, "%10s %10s\n", "median ms", "p95 ms")
			fmt.Fprintf(b.out, "%10.2f %10.2f\n", ms(quantile(taken, 0.5)), ms(quantile(taken, 0.95)))
			return nil
		})
	})
}

func once(ctx context.Context, c *queue.Client) error {
	id := uuid.Must(uuid.NewV7()).String()
	r := &tool.Request{
		Envelope: tool.Envelope{ID: id, Source: "/bench", Time: time.Now().UTC(), CorrelationID: id},
		Pool:     tool.DefaultPool, Priority: tool.Normal, Project: "p", Input: []byte("{}"),
		Inline: &tool.Inline{Source: "custom", Code: "print(1)"},
	}
	m, err := event.EncodeRequest(r, c.Names.Prefix())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	answers, err := c.Conn().SubscribeSync(c.Names.ResultSubject("p", id))
	if err != nil {
		return err
	}
	defer func() { _ = answers.Unsubscribe() }()
	if _, err := c.Publish(ctx, "p", id, m); err != nil {
		return err
	}
	answer, err := answers.NextMsgWithContext(ctx)
	if err != nil {
		return fmt.Errorf("wait for the result: %w", err)
	}
	doc, err := event.DecodeResult(event.Message{Subject: answer.Subject, Header: answer.Header, Data: answer.Data})
	if err != nil {
		return err
	}
	if !doc.Success {
		return fmt.Errorf("request %s: %s", id, doc.Raw)
	}
	return nil
}
