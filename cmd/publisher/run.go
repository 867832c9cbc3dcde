package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

// runCommand is `publisher run`.
type runCommand struct {
	Tool command.Name `arg:"" help:"Name of a tool in the catalogue."`
	requestFlags
}

// Help is the long form of --help.
func (*runCommand) Help() string {
	return `Standard output is the tool's output and nothing else; what is said about it goes to standard error. For example:

    publisher run file_read -p demo -i path=README.md
    publisher run file_read -p demo -i path=README.md -i count:=5 --json

Exit code 0: it succeeded, 1: it failed, was rejected, cancelled or expired, 2: usage, 3: no result in time, 4: NATS unreachable or refused.`
}

// Run sends one request and waits for its result.
func (c *runCommand) Run(ctx context.Context, s *session) error {
	r, err := c.request(s.In)
	if err != nil {
		return err
	}
	r.Tool = string(c.Tool)
	return s.ask(ctx, r, &c.requestFlags)
}

// ask sends a request and shows what becomes of it.
func (s *session) ask(ctx context.Context, r *tool.Request, flags *requestFlags) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if r.ID == "" {
		if r.ID, err = newID(); err != nil {
			return err
		}
	}
	sender := s.sender(client)
	if flags.NoWait {
		if err := sender.send(ctx, r); err != nil {
			return err
		}
		return s.showSent(r.Project, r.ID)
	}
	if !flags.Stream {
		if err := sender.send(ctx, r); err != nil {
			return err
		}
		doc, err := await(ctx, client, r.Project, r.ID, flags.WaitTimeout)
		if err != nil {
			return err
		}
		return s.show(ctx, client, doc, false)
	}
	return s.askLive(ctx, client, sender, r, flags)
}

// askLive is ask with the tool's output as it arrives.
func (s *session) askLive(ctx context.Context, client *queue.Client, sender *sender, r *tool.Request, flags *requestFlags) error {
	resultSubject := client.Names.ResultSubject(r.Project, r.ID)
	feed, err := listen(client, client.Names.EventSubject(r.Project, r.ID), resultSubject)
	if err != nil {
		return err
	}
	defer feed.close()
	if err := sender.send(ctx, r); err != nil {
		return err
	}
	following, stop := context.WithCancel(ctx)
	defer stop()
	var seen bool
	var failed error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		seen, failed = s.follow(following, feed, resultSubject)
	}()
	doc, err := await(ctx, client, r.Project, r.ID, flags.WaitTimeout)
	if err == nil {
		// The announcement comes after all events, unless it was lost.
		select {
		case <-ended:
		case <-time.After(lastEvents):
		}
	}
	stop()
	<-ended
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	return s.show(ctx, client, doc, seen)
}

// lastEvents is how long the last live events are waited for once the result
// is there.
const lastEvents = time.Second

// showSent tells the id of a request that nobody waits for.
func (s *session) showSent(project, id string) error {
	if s.JSON {
		return s.printJSON(struct {
			Project string `json:"project"`
			ID      string `json:"request_id"`
		}{project, id})
	}
	_, err := fmt.Fprintln(s.Out, id)
	return err
}
