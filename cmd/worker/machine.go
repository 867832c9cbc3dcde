package main

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/exec/host"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// machine is what executions may use of the machine.
type machine struct {
	Engine       string // URL, "" for the one that is found, or engine.Off
	Devcontainer string
	Expose       []string // absolute
	Require      tool.Isolation
	// Warm and Preload are those of sandbox.Config.
	Warm    sandbox.Warm
	Preload []string
	// Weakest: go without isolation where there is none to be had, as only
	// the demonstration does.
	Weakest bool
}

// equipment is what executions run on. container is nil where there is none.
type equipment struct {
	sandbox    sandbox.Runner
	isolation  tool.Isolation
	host       exec.Backend
	container  exec.Backend
	containers *container.Backend
	runtime    string // the engine's name, for spans
}

// equip tries what the machine can do. It fails when the isolation that is
// asked for cannot be had.
func (m machine) equip(log *slog.Logger) (*equipment, error) {
	config := sandbox.Config{Require: m.Require, Warm: m.Warm, Preload: m.Preload, Log: log}
	runner, err := sandbox.New(config)
	if err != nil && m.Weakest {
		config.Require = tool.IsolationNone
		runner, err = sandbox.New(config)
	}
	if err != nil {
		return nil, (&command.Error{Code: command.Failed, Err: fmt.Errorf("isolation of tools on this machine: %w", err)}).
			WithHint("worker doctor says what is missing; --require-isolation none goes without, at your risk")
	}
	backend, err := host.New(host.Config{Runner: runner, Expose: m.Expose})
	if err != nil {
		return nil, errors.Join(command.Usagef("%w", err), runner.Close())
	}
	e := &equipment{sandbox: runner, isolation: tool.IsolationNone, host: backend}
	if leveled, ok := runner.(sandbox.Leveled); ok {
		e.isolation = leveled.Level()
	}
	return e, nil
}

// equipContainers adds the engine's containers, where there is an engine. It
// need not be reachable yet.
func (e *equipment) equipContainers(m machine, worker string, slots int, alive func(string) bool, log *slog.Logger) error {
	backend, err := container.New(container.Config{
		Engine: m.Engine, Devcontainer: m.Devcontainer, Worker: worker, Slots: slots, Alive: alive, Log: log,
	})
	if errors.Is(err, container.ErrOff) {
		return nil
	}
	if err != nil {
		return command.Usagef("--container-engine: %w", err)
	}
	e.container, e.containers, e.runtime = backend, backend, "docker"
	if strings.Contains(engine.Locate(m.Engine), "podman") {
		e.runtime = "podman"
	}
	return nil
}

// close ends what is held ready.
func (e *equipment) close(log *slog.Logger) {
	if e.containers != nil {
		if err := e.containers.Close(); err != nil {
			log.Warn("remove this worker's containers", "error", err)
		}
	}
	if err := e.sandbox.Close(); err != nil {
		log.Warn("close the sandbox", "error", err)
	}
}
