package main

import (
	"context"
	"fmt"
	"os"

	"github.com/toolworker/toolworker/integration/natsserver"
	"github.com/toolworker/toolworker/internal/queue"
)

// withServer runs f against a fresh nats-server process of its own.
func withServer(ctx context.Context, f func(c *queue.Client) error) error {
	dir, err := os.MkdirTemp("", "toolworker-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server, err := natsserver.Start(ctx, dir)
	if err != nil {
		return err
	}
	defer server.Stop()
	client, err := queue.Connect(ctx, queue.Options{URL: server.URL, Name: "bench"})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer client.Close()
	if _, err := client.Ensure(ctx, queue.Topology{}); err != nil {
		return err
	}
	return f(client)
}
