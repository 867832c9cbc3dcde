package container

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/toolworker/toolworker/internal/exec/container/engine"
)

// Report is what the machine can do for tools in containers.
type Report struct {
	// Engine is the engine's URL, engine.Off when there is none.
	Engine string
	// Version describes an engine that can be reached, else Problem says why not.
	Version engine.Version
	Problem error
	// Agent is why no agent can be put into containers, nil when one can.
	Agent error
	// Devcontainer is the CLI's absolute path and version, or the problem with it.
	Devcontainer, DevcontainerVersion string
	DevcontainerProblem               error
}

// Report asks the engine and the devcontainer CLI for their versions.
func (b *Backend) Report(ctx context.Context) Report {
	r := Report{Engine: b.config.Engine, Agent: b.binary.err}
	r.Version, r.Problem = b.engine.Version(ctx)
	r.Devcontainer, r.DevcontainerProblem = b.dev.cli, b.dev.cliErr
	if r.DevcontainerProblem == nil {
		r.DevcontainerVersion, r.DevcontainerProblem = b.dev.version(ctx)
	}
	return r
}

func (d *devcontainers) version(ctx context.Context) (string, error) {
	out, err := d.command(ctx, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask devcontainer CLI for its version: %w", err)
	}
	return strings.TrimSpace(string(bytes.TrimSpace(out))), nil
}
