// Publisher is what a planner or an operator does by hand: send tool requests
// and wait for their results, look at the queue, mend what is stuck.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/trace"
)

func main() { os.Exit(command.Main(name, run)) }

const (
	name        = "publisher"
	description = "Sends tool requests over NATS JetStream and shows what became of them; looks after the queue."
)

// grammar is the command line.
type grammar struct {
	server

	Run      runCommand      `cmd:"" help:"Send one request and wait for its result."`
	Inline   inlineCommand   `cmd:"" help:"The same with inline Python."`
	Send     sendCommand     `cmd:"" help:"Send requests from JSON files or standard input."`
	Result   resultCommand   `cmd:"" help:"Show the result of a request."`
	Watch    watchCommand    `cmd:"" help:"Show results as they come."`
	Cancel   cancelCommand   `cmd:"" help:"Stop a request, running or queued."`
	Dead     deadCommand     `cmd:"" help:"Requests that were put aside: list, show, replay, drop."`
	Queue    queueCommand    `cmd:"" help:"What waits and runs, the streams, the workers."`
	Purge    purgeCommand    `cmd:"" help:"Remove the waiting requests of a project."`
	Catalog  catalogCommand  `cmd:"" help:"Tools and projects in the server's bucket: list, apply, get, delete."`
	Pause    pauseCommand    `cmd:"" help:"Hold back the requests of a project, tool or pool."`
	Resume   resumeCommand   `cmd:"" help:"Let them go on."`
	Topology topologyCommand `cmd:"" help:"What the fleet needs on the server, what is there, the difference."`
	Bench    benchCommand    `cmd:"" help:"Put load on a fleet and measure it."`
	Version  versionCommand  `cmd:"" help:"Print the version."`
}

// session is what a command has: the flags of all commands and its streams.
type session struct {
	*server
	command.Streams
	telemetry *trace.Telemetry
}

// run parses args and runs the command that they choose until ctx is over.
func run(ctx context.Context, _ context.Context, args []string, s command.Streams) error {
	var g grammar
	chosen, err := command.Parse(name, &g, args, s, options()...)
	if err != nil || chosen == nil {
		return err
	}
	telemetry, err := trace.Setup(ctx, trace.Config{Version: command.Version()})
	if err != nil {
		return command.Usagef("%w", err)
	}
	// Whoever starts us may hand a trace over in its environment.
	ctx = trace.Extract(ctx, nil, os.Getenv("TRACEPARENT"), os.Getenv("TRACESTATE"))
	chosen.BindTo(ctx, (*context.Context)(nil))
	err = chosen.Run(&session{server: &g.server, Streams: s, telemetry: telemetry})
	if err := telemetry.Shutdown(ctx); err != nil {
		// The command did its work all the same.
		command.Report(s.Err, name, fmt.Errorf("export telemetry: %w", err))
	}
	return command.ConnectError(err)
}

// options are the values that the grammar's tags refer to.
func options() []kong.Option {
	return []kong.Option{kong.Description(description)}
}
