package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"time"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/queue"
)

// checkTimeout bounds each look at something outside of this process.
const checkTimeout = 5 * time.Second

func (c *doctorCommand) checkEngine(ctx context.Context) []finding {
	f := finding{Check: "container engine"}
	url := engine.Locate(c.ContainerEngine)
	if url == engine.Off {
		f.State, f.Detail = stateOff, "none: requests for containers are environment_unavailable"
		if c.ContainerEngine == "" {
			f.Hint = "start an engine, or name one with --container-engine or DOCKER_HOST"
		}
		return []finding{f}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	version, err := askEngine(ctx, url)
	if err != nil {
		f.State, f.Detail = stateMissing, fmt.Sprintf("%s: %v", url, err)
		f.Hint = "is it running, and may this user open its socket?"
		return []finding{f}
	}
	f.State, f.Detail = stateOK, fmt.Sprintf("%s, API %s, at %s", version.Version, version.API, url)
	return []finding{f}
}

func askEngine(ctx context.Context, url string) (engine.Version, error) {
	e, err := engine.Open(url)
	if err != nil {
		return engine.Version{}, err
	}
	defer func() { _ = e.Close() }()
	return e.Version(ctx)
}

func (c *doctorCommand) checkDevcontainer(ctx context.Context) []finding {
	f := finding{Check: "devcontainer CLI"}
	path, err := exec.LookPath(c.Devcontainer)
	if err != nil {
		f.State, f.Detail = stateOff, fmt.Sprintf("%s is not there: devcontainer resources cannot be used", c.Devcontainer)
		f.Hint = "npm install -g @devcontainers/cli, or name it with --devcontainer"
		return []finding{f}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		f.State, f.Detail = stateMissing, fmt.Sprintf("%s --version: %v", path, err)
		return []finding{f}
	}
	f.State, f.Detail = stateOK, fmt.Sprintf("%s at %s", firstLine(out), path)
	return []finding{f}
}

func (c *doctorCommand) checkNATS(ctx context.Context) []finding {
	f := finding{Check: "NATS", State: stateOK}
	if c.NATSURL == "" {
		listener, err := net.Listen("tcp", c.EmbeddedListen)
		if err != nil {
			f.State, f.Detail = stateMissing, fmt.Sprintf("the embedded server cannot listen: %v", err)
			f.Hint = "another address with --embedded-listen, or --nats-url for the server that is there"
			return []finding{f}
		}
		f.Detail = fmt.Sprintf("the embedded server can listen on %s", listener.Addr())
		_ = listener.Close()
		return []finding{f}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if err := c.lookForServer(ctx, &f); err != nil {
		f.State, f.Detail = stateMissing, err.Error()
		var told *command.Error
		if errors.As(command.ConnectError(err), &told) {
			f.Hint = told.Hint
		}
	}
	return []finding{f}
}

func (c *doctorCommand) lookForServer(ctx context.Context, f *finding) error {
	opts, err := c.Options(c.NATSURL, name)
	if err != nil {
		return err
	}
	conn, err := queue.Connect(ctx, opts)
	if err != nil {
		return err
	}
	defer conn.Close()
	differences, err := conn.Diff(ctx, queue.Topology{Names: conn.Names})
	if err != nil {
		return err
	}
	f.Detail = fmt.Sprintf("nats-server %s at %s", conn.Conn().ConnectedServerVersion(), conn.Conn().ConnectedUrlRedacted())
	if n := len(differences); n > 0 {
		f.Detail += fmt.Sprintf(", %d streams or buckets are missing or differ", n)
		f.Hint = "worker run creates what is missing; publisher topology show tells the differences"
	}
	return nil
}

// firstLine is the first line of a program's output.
func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return strings.TrimSpace(string(line))
}
