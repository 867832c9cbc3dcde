package main

import (
	"context"
	"fmt"

	"github.com/toolworker/toolworker/internal/command"
)

// requestArgs name one request.
type requestArgs struct {
	Project command.Name `arg:"" help:"Project of the request."`
	ID      command.Name `arg:"" help:"Id of the request."`
}

// cancelCommand is `publisher cancel`.
type cancelCommand struct{ requestArgs }

// Help is the long form of --help.
func (*cancelCommand) Help() string {
	return `A running request is stopped within a second, a queued one is answered as cancelled within five. Whichever of cancel and result is stored first is the answer: publisher result PROJECT ID tells it.`
}

// Run asks for the cancellation of a request.
func (c *cancelCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := client.Cancel(ctx, string(c.Project), string(c.ID)); err != nil {
		return err
	}
	if s.JSON {
		return s.printJSON(struct {
			Project string `json:"project"`
			ID      string `json:"request_id"`
		}{string(c.Project), string(c.ID)})
	}
	_, err = fmt.Fprintf(s.Out, "cancellation of %s is asked for\n", c.ID)
	return err
}
