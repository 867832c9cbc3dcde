package main

import (
	"context"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
)

// connectTimeout bounds how long a server is waited for: somebody is watching.
const connectTimeout = 5 * time.Second

// server are the flags that all commands share.
type server struct {
	NATSURL string `name:"nats-url" group:"nats" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"Server to use, several separated by commas (${default})."`
	command.Connection
	JSON bool `name:"json" help:"Print JSON for scripts: one document, or one a line where there are many."`
}

// connect connects to the server. The caller closes the client.
func (s *server) connect(ctx context.Context) (*queue.Client, error) {
	opts, err := s.Options(s.NATSURL, name)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	return queue.Connect(ctx, opts)
}
