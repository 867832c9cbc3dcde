package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/terminal"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// runCommand is `worker run`.
type runCommand struct {
	NATSURL        string `name:"nats-url" group:"nats" placeholder:"URL" help:"Server to serve; without it an embedded JetStream server is started."`
	EmbeddedListen string `name:"embedded-listen" group:"nats" default:"127.0.0.1:4222" placeholder:"ADDRESS" help:"Where the embedded server listens; port 0 takes a free one and logs it (${default})."`
	command.Connection
	Replicas int `name:"replicas" group:"nats" default:"1" placeholder:"N" help:"Replicas of the streams and buckets that this worker creates, 1 to 5 (${default})."`

	Catalog            string         `name:"catalog" type:"existingdir" placeholder:"DIR" help:"Directory of YAML files with tools and projects; without it the KV bucket of the server is used (publisher catalog apply fills it)."`
	Pool               []command.Name `name:"pool" default:"default" placeholder:"NAME" help:"Pool to serve; repeatable (${default})."`
	Concurrency        *int           `name:"concurrency" placeholder:"N" help:"Requests that run at once (2 x CPUs)."`
	ProjectConcurrency int            `name:"project-concurrency" placeholder:"N" help:"Requests of one project that run at once (no bound of its own)."`
	Name               string         `name:"name" placeholder:"NAME" help:"Name of this worker in results and logs (host name and process id)."`
	execution
	Warm    string   `name:"warm" enum:"fork,spawn,off" default:"fork" placeholder:"HOW" help:"How Python is kept ready for inline code: fork (a process for each project that forks ahead), spawn (interpreters started ahead, each used once) or off (${default})."`
	Preload []string `name:"preload" placeholder:"MODULE" help:"Modules that Python has imported when inline code starts; repeatable (the most used of the standard library)."`

	DrainTimeout time.Duration `name:"drain-timeout" default:"30s" placeholder:"DURATION" help:"How long running tools may go on after the first signal; then they are stopped and their messages given back (${default})."`
	HTTPListen   string        `name:"http-listen" default:"127.0.0.1:9464" placeholder:"ADDRESS" help:"Where /healthz, /readyz and /metrics are served; empty turns it off, port 0 takes a free one and logs it (${default})."`
	LogFormat    string        `name:"log-format" enum:",text,json" default:"" placeholder:"FORMAT" help:"text or json (text on a terminal, else json)."`
	LogLevel     string        `name:"log-level" enum:"debug,info,warn,error" default:"info" placeholder:"LEVEL" help:"Least level logged: debug, info, warn or error (${default})."`
}

// execution are the flags that say what executions may use. They are those of
// doctor too, which tells whether this machine has it.
type execution struct {
	ContainerEngine  string   `name:"container-engine" placeholder:"URL" help:"URL of a container engine, or off (DOCKER_HOST, else the local socket if it is there)."`
	Devcontainer     string   `name:"devcontainer" default:"devcontainer" placeholder:"PATH" help:"The devcontainer CLI (${default})."`
	Expose           []string `name:"expose" type:"existingdir" placeholder:"DIR" help:"Directory of this machine that tools see, read-only; repeatable."`
	RequireIsolation string   `name:"require-isolation" enum:",full,reduced,none" default:"" placeholder:"LEVEL" help:"Least isolation of tools on this machine: full, reduced or none (full where possible, else reduced, else the start is refused; none only by name)."`
}

// Help is the long form of --help.
func (*runCommand) Help() string {
	return `Without --nats-url everything is in this one process:

    worker run --catalog deploy/catalog
    publisher run file_read -p demo -i path=README.md

The embedded server asks for the token in <data dir>/token, which publisher finds by itself with the same --data-dir.

The first SIGTERM or SIGINT drains: no new requests, running tools get --drain-timeout. A second one stops them at once. Either way their requests are given back and run elsewhere.

Traces, metrics and logs are exported as the standard OTEL_* variables say, for example OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318.`
}

// Validate names the flag and the value that cannot be.
func (c *runCommand) Validate() error {
	switch {
	case c.Concurrency != nil && *c.Concurrency < 1:
		return fmt.Errorf("--concurrency %d: expected 1 or more", *c.Concurrency)
	case c.ProjectConcurrency < 0:
		return fmt.Errorf("--project-concurrency %d: expected 1 or more", c.ProjectConcurrency)
	case c.Replicas < 1 || c.Replicas > 5:
		return fmt.Errorf("--replicas %d: expected 1 to 5", c.Replicas)
	case c.DrainTimeout < 0:
		return fmt.Errorf("--drain-timeout %s: expected 0s or more", c.DrainTimeout)
	case len(c.Pool) == 0:
		return errors.New("--pool: expected at least one")
	}
	if err := checkListen("--embedded-listen", c.EmbeddedListen); err != nil {
		return err
	}
	if c.HTTPListen != "" {
		if err := checkListen("--http-listen", c.HTTPListen); err != nil {
			return err
		}
	}
	if err := checkWorkerName(c.Name); err != nil {
		return err
	}
	return c.Connection.Validate()
}

// Run serves until ctx ends, then drains.
func (c *runCommand) Run(ctx context.Context, p *process) error {
	settings, err := c.settings()
	if err != nil {
		return err
	}
	telemetry, err := trace.Setup(ctx, trace.Config{
		Version: command.Version(), Instance: c.Name, Prometheus: c.HTTPListen != "",
	})
	if err != nil {
		return command.Usagef("%w", err)
	}
	log, err := telemetry.NewLogger(p.Err, c.logConfig(p.Err))
	if err != nil {
		return errors.Join(command.Usagef("%w", err), telemetry.Shutdown(ctx))
	}
	trace.ReportErrors(log)
	err = (&service{settings: settings, log: log, telemetry: telemetry}).run(ctx, p.hurry)
	if err := telemetry.Shutdown(ctx); err != nil {
		log.Warn("export the last telemetry", "error", err)
	}
	return err
}

// settings are what the flags ask for.
func (c *runCommand) settings() (settings, error) {
	s := settings{
		Name: c.Name, Pools: command.Names(c.Pool), Slots: *c.Concurrency, ProjectSlots: c.ProjectConcurrency,
		Catalog: c.Catalog, Replicas: c.Replicas, DrainTimeout: c.DrainTimeout, HTTPListen: c.HTTPListen,
	}
	if c.DrainTimeout == 0 {
		s.DrainTimeout = -1 // 0 would mean the default
	}
	var err error
	if s.Machine, err = c.machine(); err != nil {
		return s, command.Usagef("%w", err)
	}
	s.Machine.Warm, s.Machine.Preload = sandbox.Warm(c.Warm), c.Preload
	if c.NATSURL == "" {
		s.Embedded = &queue.EmbeddedOptions{Listen: c.EmbeddedListen, DataDir: c.DataDir}
		s.Connection = queue.Options{Name: c.Name, Names: c.Names()}
		return s, nil
	}
	s.Connection, err = c.Options(c.NATSURL, c.Name)
	return s, err
}

func (e *execution) machine() (machine, error) {
	expose, err := absolute(e.Expose)
	return machine{
		Engine: e.ContainerEngine, Devcontainer: e.Devcontainer, Expose: expose, Require: tool.Isolation(e.RequireIsolation),
	}, err
}

func (c *runCommand) logConfig(w io.Writer) trace.LogConfig {
	config := trace.LogConfig{Format: c.LogFormat}
	if config.Format == "" {
		config.Format = "json"
		if terminal.Is(w) {
			config.Format = "text"
		}
	}
	// The flag was checked.
	_ = config.Level.UnmarshalText([]byte(c.LogLevel))
	return config
}

// AfterApply fills in the defaults that depend on the machine.
func (c *runCommand) AfterApply() error {
	if c.Concurrency == nil {
		c.Concurrency = new(2 * runtime.NumCPU())
	}
	c.Name = cmp.Or(c.Name, defaultName())
	return nil
}

func checkListen(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s %q: expected HOST:PORT", flag, address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%s %q: port %q: expected 0 to 65535", flag, address, port)
	} else if host == "" && n == 0 {
		return fmt.Errorf("%s %q: expected HOST:PORT", flag, address)
	}
	return nil
}

func checkWorkerName(name string) error {
	if name == "" {
		return nil
	}
	return tool.CheckName("--name", name)
}

// defaultName is the host's name and the process id, as a single token.
func defaultName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "worker"
	}
	suffix := "-" + strconv.Itoa(os.Getpid())
	token := []byte(host)
	for i, c := range token {
		if !tool.ValidName(string(c)) {
			token[i] = '-'
		}
	}
	return string(token[:min(len(token), tool.MaxNameLength-len(suffix))]) + suffix
}

// options are the values that the grammar's tags refer to.
func options() []kong.Option {
	return []kong.Option{kong.Description(description)}
}

// absolute makes dirs absolute and clean.
func absolute(dirs []string) ([]string, error) {
	list := make([]string, len(dirs))
	for i, dir := range dirs {
		var err error
		if list[i], err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("--expose %s: %w", dir, err)
		}
	}
	return list, nil
}
