package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// deadCommand is `publisher dead`.
type deadCommand struct {
	List   deadList   `cmd:"" default:"withargs" help:"List the requests that were put aside."`
	Show   deadShow   `cmd:"" help:"Show one of them whole."`
	Replay deadReplay `cmd:"" help:"Send some of them again, under new ids."`
	Drop   deadDrop   `cmd:"" help:"Remove some of them for good."`
}

// Help is the long form of --help.
func (*deadCommand) Help() string {
	return `A dead letter is a message that is no event, or a request whose attempts are used up: the infrastructure failed five times, or five workers were lost while running it.`
}

type deadList struct {
	Project command.Name `name:"project" short:"p" placeholder:"PROJECT" help:"Only those of this project."`
}

// Run lists dead letters, oldest first.
func (c *deadList) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	style := s.style()
	table := terminal.NewTable(s.Out, []int{5, 20, 16, 14, 36}, 0)
	if !s.JSON {
		if err := table.Row("SEQ", "TIME", "CODE", "PROJECT", "ID", "REASON"); err != nil {
			return err
		}
	}
	var failed error
	err = client.DeadLetters(ctx, string(c.Project), func(d queue.DeadLetter) bool {
		if s.JSON {
			failed = s.printJSON(d)
		} else {
			failed = table.Row(strconv.FormatUint(d.Sequence, 10), d.Time.UTC().Format(time.RFC3339),
				style.Bad(string(d.Code)), d.Project, terminal.Line(d.ID, 36), terminal.Line(d.Reason, 80))
		}
		return failed == nil
	})
	return errors.Join(err, failed)
}

type deadShow struct {
	Sequence uint64 `arg:"" name:"seq" help:"Sequence number, as dead list shows it."`
}

// Run shows one dead letter with the request as it was sent.
func (c *deadShow) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	d, err := client.DeadLetter(ctx, c.Sequence)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.printDocument(struct {
			queue.DeadLetter
			Subject string              `json:"subject"`
			Header  map[string][]string `json:"header"`
			Body    string              `json:"body"` // what is no UTF-8 becomes U+FFFD
		}{d, d.Request.Subject, d.Request.Header, string(d.Request.Data)})
	}
	rows := [][]string{
		{"sequence", strconv.FormatUint(d.Sequence, 10)}, {"code", string(d.Code)}, {"reason", terminal.Line(d.Reason, 1000)},
		{"deliveries", strconv.FormatUint(d.Deliveries, 10)}, {"time", d.Time.UTC().Format(time.RFC3339)},
		{"subject", d.Request.Subject},
	}
	for _, name := range slices.Sorted(maps.Keys(d.Request.Header)) {
		for _, v := range d.Request.Header[name] {
			rows = append(rows, []string{"header", terminal.Line(name+": "+v, 1000)})
		}
	}
	if err := terminal.Write(s.Out, rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(s.Out, "\n%s\n", printable(d.Request.Data))
	return err
}

// sequences are the dead letters that a command is about.
type sequences struct {
	Sequences []uint64 `arg:"" name:"seq" help:"Sequence numbers, as dead list shows them."`
}

// each calls f with every sequence, tells those that failed and fails then.
func (q *sequences) each(ctx context.Context, s *session, f func(*queue.Client, uint64) error) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	var errs []error
	for _, sequence := range q.Sequences {
		errs = append(errs, f(client, sequence))
	}
	return errors.Join(errs...)
}

type deadReplay struct {
	Raw bool `name:"raw" help:"Also send what is no event, unchanged."`
	sequences
}

// Run sends dead letters again.
func (c *deadReplay) Run(ctx context.Context, s *session) error {
	return c.each(ctx, s, func(client *queue.Client, sequence uint64) error {
		id, err := client.Replay(ctx, sequence, c.Raw)
		if err != nil {
			return publishError(err)
		}
		if s.JSON {
			return s.printJSON(struct {
				Sequence uint64 `json:"sequence"`
				ID       string `json:"request_id,omitzero"`
			}{sequence, id})
		}
		if id == "" {
			id = "unchanged"
		}
		_, err = fmt.Fprintf(s.Out, "%d sent again: %s\n", sequence, id)
		return err
	})
}

type deadDrop struct{ sequences }

// Run removes dead letters.
func (c *deadDrop) Run(ctx context.Context, s *session) error {
	return c.each(ctx, s, func(client *queue.Client, sequence uint64) error {
		if err := client.DropDeadLetter(ctx, sequence); err != nil {
			return err
		}
		if s.JSON {
			return s.printJSON(struct {
				Sequence uint64 `json:"sequence"`
			}{sequence})
		}
		_, err := fmt.Fprintf(s.Out, "%d dropped\n", sequence)
		return err
	})
}
