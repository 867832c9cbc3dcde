package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// topologyCommand is `publisher topology`.
type topologyCommand struct {
	Show    topologyShow    `cmd:"" default:"withargs" help:"List streams and buckets, and how they differ from what the fleet needs; exit code 1 if they do."`
	Apply   topologyApply   `cmd:"" help:"Create what is missing and change what differs, where that is possible in place."`
	AddPool topologyAddPool `cmd:"" help:"Take requests for one more pool."`
}

// topologyFlags say what the fleet needs.
type topologyFlags struct {
	Pool     []command.Name `name:"pool" default:"default" placeholder:"NAME" help:"Pool that requests must be taken for; repeatable (${default})."`
	Replicas int            `name:"replicas" default:"1" placeholder:"N" help:"Replicas of streams and buckets, 1 to 5 (${default})."`
}

// Validate names the value that cannot be.
func (f *topologyFlags) Validate() error {
	if f.Replicas < 1 || f.Replicas > 5 {
		return fmt.Errorf("--replicas %d: expected 1 to 5", f.Replicas)
	}
	return nil
}

func (f *topologyFlags) topology(names queue.Names) queue.Topology {
	return queue.Topology{Names: names, Pools: command.Names(f.Pool), Replicas: f.Replicas}
}

type topologyShow struct{ topologyFlags }

// Run lists the parts. It fails when one of them is not as the fleet needs it.
func (c *topologyShow) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	parts, err := client.Show(ctx, c.topology(client.Names))
	if err != nil {
		return err
	}
	var differences []queue.Difference
	for _, p := range parts {
		differences = append(differences, p.Differences...)
	}
	if s.JSON {
		err = s.printDocument(parts)
	} else {
		err = s.printParts(parts)
	}
	if err == nil && len(differences) > 0 {
		err = (&command.Error{Code: command.Failed, Err: fmt.Errorf("%d differences", len(differences))}).
			WithHint("publisher topology apply mends what can be changed in place")
	}
	return err
}

func (s *session) printParts(parts []queue.Part) error {
	style := s.style()
	rows := [][]string{{"KIND", "NAME", "MESSAGES", "BYTES", "CONSUMERS", "REPLICAS", "STATE"}}
	for _, p := range parts {
		row := []string{string(p.Kind), p.Name, "", "", "", "", style.Bad("missing")}
		if p.Present {
			row = []string{
				string(p.Kind), p.Name, strconv.FormatUint(p.Messages, 10), strconv.FormatUint(p.Bytes, 10),
				strconv.Itoa(p.Consumers), strconv.Itoa(p.Replicas), style.Good("ok"),
			}
			if n := len(p.Differences); n > 0 {
				row[6] = style.Odd("differs")
			}
		}
		rows = append(rows, row)
	}
	if err := terminal.Write(s.Out, rows, 2, 3, 4, 5); err != nil {
		return err
	}
	for _, p := range parts {
		for _, d := range p.Differences {
			if d.Missing() {
				continue
			}
			if _, err := fmt.Fprintln(s.Out, d); err != nil {
				return err
			}
		}
	}
	return nil
}

type topologyApply struct{ topologyFlags }

// Run creates and changes; it fails when something is different still.
func (c *topologyApply) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	left, err := client.Apply(ctx, c.topology(client.Names))
	if err != nil {
		return err
	}
	if s.JSON {
		err = s.printDocument(struct {
			Left []queue.Difference `json:"left"`
		}{left})
	} else if len(left) == 0 {
		_, err = fmt.Fprintln(s.Out, "streams and buckets are as the fleet needs them")
	} else {
		for _, d := range left {
			fmt.Fprintln(s.Out, d)
		}
	}
	if err == nil && len(left) > 0 {
		err = (&command.Error{Code: command.Failed, Err: fmt.Errorf("%d differences are left", len(left))}).
			WithHint("they cannot be changed in place: the stream or bucket has to be made anew")
	}
	return err
}

type topologyAddPool struct {
	Name command.Name `arg:"" help:"Name of the pool."`
}

// Run makes the requests stream take requests for one more pool.
func (c *topologyAddPool) Run(ctx context.Context, s *session) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.AddPool(ctx, string(c.Name)); err != nil {
		return err
	}
	if s.JSON {
		return s.printJSON(struct {
			Pool string `json:"pool"`
		}{string(c.Name)})
	}
	_, err = fmt.Fprintf(s.Out, "requests for pool %s are taken now\n", c.Name)
	return err
}
