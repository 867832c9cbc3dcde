// Worker serves tool requests from JetStream: it consumes them, runs the
// tools on this machine or in containers, and publishes their results.
package main

import (
	"context"
	"os"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
)

func main() {
	// Neither returns where this process is a part of a sandbox, or the agent
	// in a container.
	sandbox.Main()
	agent.Main()
	os.Exit(command.Main(name, run))
}

const (
	name        = "worker"
	description = "Serves tool requests from NATS JetStream: runs them confined on this machine, publishes their results."
)

// grammar is the command line.
type grammar struct {
	Run     runCommand     `cmd:"" help:"Serve until SIGTERM or SIGINT, then drain."`
	Demo    demoCommand    `cmd:"" help:"Show everything at work, in one process on a temporary directory."`
	Doctor  doctorCommand  `cmd:"" help:"Say what this machine can do, and what to do about what it cannot."`
	Version versionCommand `cmd:"" help:"Print the version."`
}

// process is what a command has of the process that it runs in.
type process struct {
	command.Streams
	// hurry ends when somebody asks a second time to stop.
	hurry context.Context
}

// run parses args and runs the command that they choose until ctx is over.
func run(ctx context.Context, hurry context.Context, args []string, s command.Streams) error {
	chosen, err := command.Parse(name, &grammar{}, args, s, options()...)
	if err != nil || chosen == nil {
		return err
	}
	chosen.BindTo(ctx, (*context.Context)(nil))
	return chosen.Run(&process{Streams: s, hurry: hurry})
}
