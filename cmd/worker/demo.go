package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	samplecatalog "github.com/toolworker/toolworker/deploy/catalog"
	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
	"github.com/toolworker/toolworker/schemas"
)

// demoCommand is `worker demo`.
type demoCommand struct {
	JSON bool `name:"json" help:"Print JSON, one document a line: the results, then the trace."`
}

// Help is the long form of --help.
func (*demoCommand) Help() string {
	return `Starts the embedded server and a worker in this process, sends the sample requests about a copy of this checkout (or a small sample project), prints each result as it comes and then the trace of one request. Everything is in a temporary directory, which is removed at the end.

Exit code 0 when every request ended as its sample says.`
}

// demoTimeout bounds the whole demonstration.
const demoTimeout = time.Minute

// Run shows everything at work.
func (c *demoCommand) Run(ctx context.Context, p *process) (err error) {
	ctx, cancel := context.WithTimeout(ctx, demoTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "toolworker-demo-")
	if err != nil {
		return fmt.Errorf("make a directory for the demonstration: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	d := &demo{view: newView(p.Out, c.JSON), dir: dir, collector: trace.NewCollector()}
	if err := d.prepare(); err != nil {
		return err
	}
	return d.run(ctx, p)
}

// demo is one demonstration.
type demo struct {
	view      view
	dir       string
	samples   []schemas.Sample
	projects  []*tool.Project
	collector *trace.Collector
	spans     trace.Spans
}

// prepare writes the catalogue and the project to work on.
func (d *demo) prepare() (err error) {
	if d.samples, err = schemas.Samples(); err != nil {
		return err
	}
	if err := samplecatalog.WriteTo(d.path("catalog")); err != nil {
		return err
	}
	snapshot, faults, err := catalog.LoadDirectory(d.path("catalog"))
	if err = errors.Join(err, faults.Err()); err != nil {
		return fmt.Errorf("read the sample catalogue: %w", err)
	}
	project := d.path("project")
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	what, err := copyProject(here, project)
	if err != nil {
		return err
	}
	for _, e := range snapshot.List() {
		if p, ok := snapshot.Project(e.Name); ok && e.Kind == catalog.KindProject {
			moved := *p
			moved.HostSandboxPath = project
			d.projects = append(d.projects, &moved)
		}
	}
	return d.view.begin(len(snapshot.List())-len(d.projects), what)
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// run starts a worker, shows the samples and ends it.
func (d *demo) run(ctx context.Context, p *process) error {
	telemetry, err := trace.Setup(ctx, trace.Config{
		Version: command.Version(), Instance: "demo", SpanProcessors: []sdktrace.SpanProcessor{d.collector},
	})
	if err != nil {
		return command.Usagef("%w", err)
	}
	log, err := telemetry.NewLogger(p.Err, trace.LogConfig{Format: "text", Level: slog.LevelError})
	if err != nil {
		return err
	}
	ready := make(chan *service, 1)
	worker := &service{settings: d.settings(func(s *service) { ready <- s }), log: log, telemetry: telemetry}
	serving, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- worker.run(serving, p.hurry) }()
	select {
	case err := <-ended:
		return errors.Join(err, telemetry.Shutdown(ctx))
	case s := <-ready:
		err = d.show(ctx, s)
	}
	stop()
	return errors.Join(err, <-ended, telemetry.Shutdown(ctx))
}

func (d *demo) settings(ready func(*service)) settings {
	return settings{
		Name: "demo", Pools: []string{tool.DefaultPool}, Slots: 2 * runtime.NumCPU(),
		Catalog: d.path("catalog"), Projects: d.projects,
		Embedded:     &queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: d.path("data")},
		Connection:   queue.Options{Name: "demo"},
		Replicas:     1,
		Machine:      machine{Engine: engine.Off, Weakest: true},
		DrainTimeout: time.Second,
		ready:        ready,
	}
}

// errDiffers: a sample did not end as it says.
var errDiffers = errors.New("not every request ended as its sample says")

// show sends the samples, prints each result as it comes, and then the trace
// of the one that shows most.
func (d *demo) show(ctx context.Context, s *service) error {
	d.spans = trace.NewSpans(s.telemetry.Tracer, s.client.Names.Prefix())
	if err := d.view.serving(s, d.samples); err != nil {
		return err
	}
	answers := make(chan answer)
	for _, sample := range d.samples {
		go func() { answers <- d.ask(ctx, s.client, sample) }()
	}
	var err error
	var traced answer
	good := 0
	for range d.samples {
		a := <-answers
		if len(a.differences) == 0 {
			good++
		}
		if a.richer(traced) {
			traced = a
		}
		err = errors.Join(err, d.view.result(a))
	}
	if good < len(d.samples) {
		err = errors.Join(err, errDiffers)
	}
	if waitErr := d.collector.Wait(ctx, traced.trace, trace.SpanProcessRequest); waitErr != nil {
		return errors.Join(err, fmt.Errorf("wait for the trace: %w", waitErr))
	}
	return errors.Join(err, d.view.trace(traced, d.collector.Trace(traced.trace)), d.view.end(good, len(d.samples)))
}
