package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/command"
)

// switchFlags name what is paused or resumed.
type switchFlags struct {
	Project []command.Name `name:"project" placeholder:"P" help:"Project; repeatable."`
	Tool    []command.Name `name:"tool" placeholder:"T" help:"Tool; repeatable."`
	Pool    []command.Name `name:"pool" placeholder:"P" help:"Pool; repeatable."`
}

// Validate asks for at least one.
func (f *switchFlags) Validate() error {
	if len(f.switches()) == 0 {
		return errors.New("expected --project, --tool or --pool")
	}
	return nil
}

func (f *switchFlags) switches() []catalog.Switch {
	var list []catalog.Switch
	add := func(kind catalog.SwitchKind, names []command.Name) {
		for _, n := range names {
			list = append(list, catalog.Switch{Kind: kind, Name: string(n)})
		}
	}
	add(catalog.SwitchProject, f.Project)
	add(catalog.SwitchTool, f.Tool)
	add(catalog.SwitchPool, f.Pool)
	return list
}

// set calls f with every switch and tells what was done.
func (f *switchFlags) set(ctx context.Context, s *session, done string, set func(*catalog.Store, context.Context, catalog.Switch) error) error {
	return s.withStore(ctx, func(store *catalog.Store) error {
		for _, w := range f.switches() {
			if err := set(store, ctx, w); err != nil {
				return err
			}
			if s.JSON {
				if err := s.printJSON(w); err != nil {
					return err
				}
				continue
			}
			if _, err := fmt.Fprintf(s.Out, "%s is %s\n", w, done); err != nil {
				return err
			}
		}
		return nil
	})
}

// pauseCommand is `publisher pause`.
type pauseCommand struct{ switchFlags }

// Help is the long form of --help.
func (*pauseCommand) Help() string {
	return `Requests of what is paused are taken and wait in the queue; what runs already goes on. It holds for all workers, whatever their catalogue's source, until publisher resume.`
}

// Run pauses.
func (c *pauseCommand) Run(ctx context.Context, s *session) error {
	return c.set(ctx, s, "paused", (*catalog.Store).Pause)
}

// resumeCommand is `publisher resume`.
type resumeCommand struct{ switchFlags }

// Run resumes.
func (c *resumeCommand) Run(ctx context.Context, s *session) error {
	return c.set(ctx, s, "resumed", (*catalog.Store).Resume)
}
