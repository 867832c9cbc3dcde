package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/terminal"
)

// catalogCommand is `publisher catalog`.
type catalogCommand struct {
	List   catalogList   `cmd:"" default:"withargs" help:"List the tools and projects in force."`
	Apply  catalogApply  `cmd:"" help:"Put the entries of a directory in force, all or none."`
	Get    catalogGet    `cmd:"" help:"Print one entry."`
	Delete catalogDelete `cmd:"" help:"Take one entry out of force."`
}

// Help is the long form of --help.
func (*catalogCommand) Help() string {
	return `The catalogue in the server's KV bucket is that of all workers without --catalog. They switch to a new state in one step, without a restart.`
}

// withStore opens the catalogue's bucket and calls f with it.
func (s *session) withStore(ctx context.Context, f func(*catalog.Store) error) error {
	client, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	store, err := catalog.OpenStore(ctx, client.JetStream(), client.Names.CatalogBucket())
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		err = fmt.Errorf("%w: %s", queue.ErrNoTopology, client.Names.CatalogBucket())
	}
	if err != nil {
		return err
	}
	return f(store)
}

type catalogList struct{}

// Run lists the entries, and fails when one of them is bad.
func (*catalogList) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, func(store *catalog.Store) error {
		snapshot, faults, err := store.Snapshot(ctx)
		if err != nil {
			return err
		}
		style := s.style()
		rows := [][]string{{"KIND", "NAME", "STATE", "DESCRIPTION"}}
		for _, e := range snapshot.List() {
			if s.JSON {
				if err := s.printJSON(e); err != nil {
					return err
				}
				continue
			}
			state := style.Good("enabled")
			if !e.Enabled {
				state = style.Odd("disabled")
			}
			rows = append(rows, []string{string(e.Kind), e.Name, state, terminal.Line(e.Description, 70)})
		}
		for _, w := range snapshot.Switches() {
			if s.JSON {
				if err := s.printJSON(pausedLine{w, true}); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, []string{string(w.Kind), w.Name, style.Odd("paused"), ""})
		}
		if !s.JSON {
			if err := terminal.Write(s.Out, rows); err != nil {
				return err
			}
		}
		return s.refuse(faults)
	})
}

// pausedLine is a switch in a listing for scripts.
type pausedLine struct {
	catalog.Switch
	Paused bool `json:"paused"`
}

// refuse tells every fault on a line of its own; the exit code says the rest.
func (s *session) refuse(faults catalog.Faults) error {
	if len(faults) == 0 {
		return nil
	}
	for _, f := range faults {
		if _, err := fmt.Fprintf(s.Err, "%s: %s\n", name, f); err != nil {
			return err
		}
	}
	return done(command.Failed)
}

type catalogApply struct {
	Dir string `name:"file" short:"f" required:"" type:"existingdir" placeholder:"DIR" help:"Directory of YAML files."`
}

// Run puts a directory in force. Nothing is stored when one entry is bad.
func (c *catalogApply) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, func(store *catalog.Store) error {
		applied, err := store.Apply(ctx, c.Dir)
		var faults catalog.Faults
		if errors.As(err, &faults) {
			return s.refuse(faults)
		}
		if err != nil {
			return err
		}
		if s.JSON {
			return s.printDocument(applied)
		}
		for _, key := range applied.Changed {
			if _, err := fmt.Fprintln(s.Out, key); err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(s.Out, "revision %d: %d changed, %d unchanged\n", applied.Revision, len(applied.Changed), len(applied.Unchanged))
		return err
	})
}

type catalogGet struct {
	Name string `arg:"" help:"Name of a tool or project; tool.NAME or project.NAME where both have it."`
}

// Run prints one entry as JSON.
func (c *catalogGet) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, func(store *catalog.Store) error {
		entry, err := store.Get(ctx, c.Name)
		if err != nil {
			return err
		}
		return s.printDocument(jsontext.Value(entry))
	})
}

type catalogDelete struct {
	Name string `arg:"" help:"Name of a tool or project; tool.NAME or project.NAME where both have it."`
}

// Run takes one entry out of force.
func (c *catalogDelete) Run(ctx context.Context, s *session) error {
	return s.withStore(ctx, func(store *catalog.Store) error {
		if err := store.Delete(ctx, c.Name); err != nil {
			return err
		}
		if s.JSON {
			return s.printJSON(struct {
				Deleted string `json:"deleted"`
			}{c.Name})
		}
		_, err := fmt.Fprintf(s.Out, "%s is deleted\n", c.Name)
		return err
	})
}
