package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
	"github.com/toolworker/toolworker/internal/tool"
)

// sendCommand is `publisher send`.
type sendCommand struct {
	Files   []string     `arg:"" name:"file" help:"JSON files, - for standard input; a file may hold many documents, as JSON lines for example."`
	Project command.Name `name:"project" short:"p" placeholder:"PROJECT" help:"Project of events that only refer to their data."`
	laneFlags
	Wait bool `name:"wait" help:"Wait for the results and print each as it comes."`
	waitFlags
	Concurrency int `name:"concurrency" default:"64" placeholder:"N" help:"Requests under way at once (${default})."`
}

// Help is the long form of --help.
func (*sendCommand) Help() string {
	return `A document is the data of a request ({"project": ..., "tool": ..., "input": {...}}) or a whole CloudEvent. It is sent as it is; what is wrong with it is told by its result.

    publisher send request.json --wait
    generate | publisher send - --json > ids.jsonl

With --wait the exit code is 1 if one of them did not succeed, 3 if one has no result in time.`
}

// Validate names the value that cannot be.
func (c *sendCommand) Validate() error {
	if c.Concurrency < 1 || c.Concurrency > 1024 {
		return fmt.Errorf("--concurrency %d: expected 1 to 1024", c.Concurrency)
	}
	return c.waitFlags.Validate()
}

// Run sends every document.
func (c *sendCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	b := &batch{
		session: s, command: c, client: client, sender: s.sender(client),
		progress: c.progress(s),
		table:    terminal.NewTable(s.Out, []int{36, 20, 9, 10}, 3),
	}
	return b.run(ctx)
}

// progress is a bar where it does not tear the output on the same terminal apart.
func (c *sendCommand) progress(s *session) *terminal.Progress {
	w := s.Err
	if terminal.Is(s.Out) {
		w = io.Discard
	}
	return terminal.NewProgress(w, "send", c.count())
}

// count is the number of documents in files; 0 when it cannot be known.
func (c *sendCommand) count() int {
	n := 0
	for _, name := range c.Files {
		if name == "-" {
			return 0
		}
	}
	for _, err := range documents(c.Files, nil) {
		if err != nil {
			return 0
		}
		n++
	}
	return n
}

// batch is the sending of many documents.
type batch struct {
	*session
	command  *sendCommand
	client   *queue.Client
	sender   *sender
	progress *terminal.Progress
	table    *terminal.Table

	mu     sync.Mutex // of the output and of what follows
	sent   int
	worst  error // of the results
	failed error // why nothing more is sent
}

// run sends the documents, several at once. The first that cannot be sent
// ends it; those under way then are finished.
func (b *batch) run(ctx context.Context) error {
	workers := pool.New().WithMaxGoroutines(b.command.Concurrency)
	for d, err := range documents(b.command.Files, b.In) {
		if err == nil {
			d.project = cmp.Or(d.project, string(b.command.Project))
			if bad := tool.CheckName("project", d.project); bad != nil {
				err = fmt.Errorf("%s: %w", d.place, bad)
			}
		}
		if err != nil {
			b.stop(command.Usagef("%w", err))
		}
		if b.stopped() || ctx.Err() != nil {
			break
		}
		workers.Go(func() {
			if err := b.one(ctx, d); err != nil {
				b.stop(err)
			}
		})
	}
	workers.Wait()
	b.progress.Finish()
	switch {
	case ctx.Err() != nil:
		return &command.Error{Code: command.Failed, Err: fmt.Errorf("interrupted after %d requests were sent", b.sent)}
	case b.failed != nil:
		return b.explain(b.failed)
	}
	return b.worst
}

func (b *batch) stop(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failed = cmp.Or(b.failed, err)
}

func (b *batch) stopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failed != nil
}

// explain says how far it came.
func (b *batch) explain(err error) error {
	var e *command.Error
	if b.sent > 0 && errors.As(err, &e) && e.Hint == "" {
		return (&command.Error{Code: e.Code, Err: err}).WithHint("%d requests were sent before", b.sent)
	}
	return err
}

// one sends one document and prints what became of it.
func (b *batch) one(ctx context.Context, d *document) error {
	if err := b.sender.sendDocument(ctx, d, b.command.laneFlags); err != nil {
		return err
	}
	b.mu.Lock()
	b.sent++
	b.mu.Unlock()
	if !b.command.Wait {
		b.progress.Step(true)
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.showSent(d.project, d.id)
	}
	doc, err := await(ctx, b.client, d.project, d.id, b.command.WaitTimeout)
	if err == nil {
		err = outcome(doc)
	} else if command.ExitCode(err) != command.NoResult {
		return err
	}
	b.progress.Step(err == nil)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.note(err)
	return b.row(ctx, d, doc, err)
}

// note keeps the worst exit code: no result is worse than a bad one.
func (b *batch) note(err error) {
	if err != nil && command.ExitCode(err) > cmp.Or(command.ExitCode(b.worst), 0) {
		b.worst = quiet(err)
	}
}

// row prints the answer to one document.
func (b *batch) row(ctx context.Context, d *document, doc *event.ResultDoc, err error) error {
	switch {
	case b.JSON && doc != nil:
		whole, err := complete(ctx, b.client, doc)
		if err != nil {
			return err
		}
		return b.printJSON(whole)
	case b.JSON:
		return b.printJSON(struct {
			Project string `json:"project"`
			ID      string `json:"request_id"`
			Missing string `json:"no_result"`
		}{d.project, d.id, err.Error()})
	case doc == nil:
		return b.table.Row(d.id, terminal.Line(d.name, 20), b.style().Bad("no result"), "", "")
	}
	return b.table.Row(resultRow(b.style(), doc)...)
}

// resultRow is one result in a table: id, tool, status, duration, and what
// there is to say.
func resultRow(style terminal.Style, doc *event.ResultDoc) []string {
	status, detail := style.Good(string(doc.Status)), ""
	if doc.Error != nil {
		status = style.Bad(string(doc.Status))
		detail = string(doc.Error.Code) + ": " + strings.TrimSpace(doc.Error.Message)
	} else if doc.Output != nil {
		detail = string(doc.Output)
	}
	took := ""
	if doc.Metadata.Environment != nil && doc.Status != tool.StatusRejected {
		took = short(duration(doc))
	}
	return []string{doc.RequestID, terminal.Line(doc.Tool, 20), status, took, terminal.Line(detail, 80)}
}
