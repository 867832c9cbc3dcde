// Publisher is what a planner or an operator does by hand: send tool requests
// and wait for their results, look at the queue, mend what is stuck.
package main

import (
	"context"
	"os"

	"github.com/alecthomas/kong"

	"github.com/toolworker/toolworker/internal/command"
)

func main() { os.Exit(command.Main(name, run)) }

const (
	name        = "publisher"
	description = "Sends tool requests over NATS JetStream and shows what became of them; looks after the queue."
)

// grammar is the command line.
type grammar struct {
	server

	Topology topologyCommand `cmd:"" help:"What the fleet needs on the server, what is there, the difference."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// session is what a command has: the flags of all commands and its streams.
type session struct {
	*server
	command.Streams
}

// run parses args and runs the command that they choose until ctx is over.
func run(ctx context.Context, _ <-chan struct{}, args []string, s command.Streams) error {
	var g grammar
	chosen, err := command.Parse(name, &g, args, s, options()...)
	if err != nil || chosen == nil {
		return err
	}
	chosen.BindTo(ctx, (*context.Context)(nil))
	return command.ConnectError(chosen.Run(&session{server: &g.server, Streams: s}))
}

// options are the values that the grammar's tags refer to.
func options() []kong.Option {
	return []kong.Option{kong.Description(description)}
}
