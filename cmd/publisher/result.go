package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
)

// resultCommand is `publisher result`.
type resultCommand struct {
	requestArgs
	Wait bool `name:"wait" help:"Wait for the result if there is none yet."`
	waitFlags
}

// Help is the long form of --help.
func (*resultCommand) Help() string {
	return `Results are kept for seven days. The exit codes are those of publisher run; 3 also when there is no result yet.`
}

// Run shows the stored result of a request.
func (c *resultCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	doc, err := c.find(ctx, client)
	if err != nil {
		return err
	}
	return s.show(ctx, client, doc, false)
}

func (c *resultCommand) find(ctx context.Context, client *queue.Client) (*event.ResultDoc, error) {
	project, id := string(c.Project), string(c.ID)
	if c.Wait {
		return await(ctx, client, project, id, c.WaitTimeout)
	}
	asking, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	m, err := client.Result(asking, project, id)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, (&command.Error{Code: command.NoResult, Err: fmt.Errorf("%s has no result yet", id)}).
			WithHint("--wait waits for it; publisher queue tells what is waiting")
	}
	if err != nil {
		return nil, err
	}
	return event.DecodeResult(m)
}
