package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// watchCommand is `publisher watch`.
type watchCommand struct {
	Project command.Name `name:"project" short:"p" placeholder:"PROJECT" help:"Only this project (all)."`
	Live    bool         `name:"live" help:"Live events too, of requests that ask for them."`
	Count   int          `name:"count" placeholder:"N" help:"End after so many results (never)."`
}

// Help is the long form of --help.
func (*watchCommand) Help() string {
	return `Shows results as they are stored, until Ctrl-C. Results of before are shown by publisher result.`
}

// Validate names the value that cannot be.
func (c *watchCommand) Validate() error {
	if c.Count < 0 {
		return fmt.Errorf("--count %d: expected 1 or more", c.Count)
	}
	return nil
}

// Run shows results until ctx is over.
func (c *watchCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if ctx.Err() != nil {
		if err == nil {
			client.Close()
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer client.Close()
	project := string(c.Project)
	if project == "" {
		project = "*"
	}
	subjects := []string{client.Names.ResultSubject(project, "*")}
	if c.Live {
		subjects = append(subjects, client.Names.EventSubject(project, "*"))
	}
	feed, err := listen(client, subjects...)
	if err != nil {
		return err
	}
	defer feed.close()
	table := terminal.NewTable(s.Out, []int{8, 14, 36, 20, 9, 10}, 5)
	if !s.JSON {
		if err := table.Row("TIME", "PROJECT", "ID", "TOOL", "STATUS", "TOOK"); err != nil {
			return err
		}
	}
	seen := map[string]bool{} // a result that came second is announced and never stored
	for shown := 0; c.Count == 0 || shown < c.Count; {
		select {
		case <-ctx.Done():
			return nil
		case m := <-feed.messages:
			if _, err := client.Names.Split(m.Subject, "result", 2); err != nil {
				if err := c.live(s, table, m); err != nil {
					return err
				}
				continue
			}
			if seen[m.Subject] {
				continue
			}
			if len(seen) == seenMost {
				clear(seen)
			}
			seen[m.Subject] = true
			if err := c.result(ctx, s, client, table, m); err != nil {
				return err
			}
			shown++
		}
	}
	return nil
}

// seenMost bounds what a long watch remembers.
const seenMost = 1 << 16

// result shows one result that was announced; as JSON whole, as the other
// commands do, unless what was moved cannot be had any more.
func (c *watchCommand) result(ctx context.Context, s *session, client *queue.Client, table *terminal.Table, m *nats.Msg) error {
	doc, err := event.DecodeResult(event.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
	switch {
	case err != nil && s.JSON:
		return s.printJSON(struct {
			Subject string `json:"subject"`
			Error   string `json:"unreadable"`
		}{m.Subject, err.Error()})
	case err != nil:
		return table.Row(clock(), "", m.Subject, "", s.style().Bad("unreadable"), "", terminal.Line(err.Error(), 80))
	case s.JSON:
		whole, err := complete(ctx, client, doc)
		if err != nil {
			whole = jsontext.Value(doc.Raw)
		}
		return s.printJSON(whole)
	}
	return table.Row(append([]string{clock(), doc.Project}, resultRow(s.style(), doc)...)...)
}

// live shows one live event.
func (c *watchCommand) live(s *session, table *terminal.Table, m *nats.Msg) error {
	live, err := event.DecodeLive(event.Message{Subject: m.Subject, Header: m.Header, Data: m.Data})
	if err != nil {
		return nil // a later worker's: it says nothing to us
	}
	if s.JSON {
		return s.printJSON(liveLine(live))
	}
	kind, detail := "started", ""
	switch {
	case live.Output != nil:
		kind, detail = live.Output.Stream, live.Output.Text
	case live.Retrying != nil:
		kind, detail = "retrying", string(live.Retrying.Error.Code)
	case live.Started != nil:
		detail = live.Started.Worker
	}
	return table.Row(clock(), "", terminal.Line(live.Event.CausationID, 36), terminal.Line(live.Event.Subject, 20),
		s.style().Faint(kind), "", terminal.Line(detail, 80))
}

func clock() string { return time.Now().Format(time.TimeOnly) }
