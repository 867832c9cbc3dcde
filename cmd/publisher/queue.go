package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// queueCommand is `publisher queue`.
type queueCommand struct{}

// Help is the long form of --help.
func (*queueCommand) Help() string {
	return `What waits and what runs, by lane (pool, priority, project); the streams; the workers that are alive. Running counts requests that wait for a retry as well.`
}

// Run shows the queue at one moment.
func (*queueCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.printDocument(status)
	}
	for _, table := range []struct {
		rows  [][]string
		right []int
		none  string
	}{
		{laneRows(s.style(), status.Lanes), []int{3, 4, 5}, "no requests are waiting or running"},
		{streamRows(status.Streams), []int{1, 2, 3}, "no streams"},
		{workerRows(s.style(), status.Workers), []int{2, 3}, s.style().Bad("no workers are alive")},
	} {
		if len(table.rows) == 1 {
			_, err = fmt.Fprintf(s.Out, "%s\n\n", table.none)
		} else if err = terminal.Write(s.Out, table.rows, table.right...); err == nil {
			_, err = fmt.Fprintln(s.Out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func laneRows(style terminal.Style, lanes []queue.LaneStatus) [][]string {
	rows := [][]string{{"POOL", "PRIORITY", "PROJECT", "WAITING", "RUNNING", "OLDEST", ""}}
	for _, l := range lanes {
		age, note := "", ""
		if !l.Oldest.IsZero() {
			age = short(time.Since(l.Oldest))
		}
		if l.Consumer == "" {
			note = style.Odd("nobody serves it")
		}
		rows = append(rows, []string{
			l.Pool, string(l.Priority), l.Project, strconv.FormatUint(l.Waiting, 10), strconv.FormatUint(l.Running, 10), age, note,
		})
	}
	return rows
}

func streamRows(parts []queue.Part) [][]string {
	rows := [][]string{{"STREAM", "MESSAGES", "BYTES", "CONSUMERS"}}
	for _, p := range parts {
		if p.Kind == queue.KindStream && p.Present {
			rows = append(rows, []string{
				p.Name, strconv.FormatUint(p.Messages, 10), strconv.FormatUint(p.Bytes, 10), strconv.Itoa(p.Consumers),
			})
		}
	}
	return rows
}

func workerRows(style terminal.Style, workers []queue.Worker) [][]string {
	rows := [][]string{{"WORKER", "POOLS", "SLOTS", "RUNNING", "ISOLATION", "VERSION", "STATE"}}
	for _, w := range workers {
		state := style.Good("serving")
		if w.Draining {
			state = style.Odd("draining")
		}
		rows = append(rows, []string{
			terminal.Line(w.Name, 60), terminal.Line(strings.Join(w.Pools, " "), 60), strconv.Itoa(w.Slots), strconv.Itoa(w.Running),
			string(w.Isolation), terminal.Line(w.Version, 40), state,
		})
	}
	return rows
}

// purgeCommand is `publisher purge`.
type purgeCommand struct {
	Project command.Name `name:"project" short:"p" required:"" placeholder:"P" help:"Project whose waiting requests are removed."`
}

// Help is the long form of --help.
func (*purgeCommand) Help() string {
	return `Removes the requests of a project that wait in the queue, in all pools and priorities. They get no result: publisher cancel answers a request instead.`
}

// Run removes what waits.
func (c *purgeCommand) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	n, err := client.Purge(ctx, string(c.Project))
	if err != nil {
		return err
	}
	if s.JSON {
		return s.printJSON(struct {
			Project string `json:"project"`
			Purged  uint64 `json:"purged"`
		}{string(c.Project), n})
	}
	_, err = fmt.Fprintf(s.Out, "%d requests of %s are removed\n", n, c.Project)
	return err
}
