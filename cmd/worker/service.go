package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// service is one worker, from its start to its end.
type service struct {
	settings
	log       *slog.Logger
	telemetry *trace.Telemetry

	client    *queue.Client
	catalogue *catalog.Source
	consumer  *consume.Consumer
	isolation tool.Isolation
	started   time.Time

	phase atomic.Pointer[phase]
}

// settings are what a worker is made of.
type settings struct {
	Name         string
	Pools        []string
	Slots        int
	ProjectSlots int
	Catalog      string          // directory, "" for the bucket
	Projects     []*tool.Project // there whatever the catalogue says
	Connection   queue.Options   // where no embedded server is used
	Embedded     *queue.EmbeddedOptions
	Replicas     int
	Machine      machine
	DrainTimeout time.Duration
	HTTPListen   string // "" for none
	ready        func(*service)
}

// phase is how far a worker has come; reasons say why it is not ready.
type phase struct{ reasons []string }

func (s *service) enter(reasons ...string) { s.phase.Store(&phase{reasons}) }

// readiness lists why the worker is not ready.
func (s *service) readiness() []string {
	reasons := append([]string(nil), s.phase.Load().reasons...)
	if len(reasons) > 0 {
		return reasons
	}
	if !s.client.Connected() {
		reasons = append(reasons, "not connected to NATS")
	}
	if s.consumer.Draining() {
		reasons = append(reasons, "draining")
	}
	return reasons
}

// run serves until ctx ends and then drains, for no time once hurry has ended.
func (s *service) run(ctx, hurry context.Context) (err error) {
	s.started = time.Now()
	s.enter("starting")
	metrics, err := trace.NewMetrics(s.telemetry.Meter)
	if err != nil {
		return err
	}
	if s.HTTPListen != "" {
		health, err := newHealth(s.HTTPListen, s.readiness, s.telemetry.Handler())
		if err != nil {
			return err
		}
		var serving conc.WaitGroup
		serving.Go(func() { health.serve(s.log) })
		defer serving.Wait()
		defer health.close()
		s.log.Info("serving http", "url", health.URL())
	}

	// The machine is looked at while the server starts.
	var looking conc.WaitGroup
	var equipped *equipment
	var unfit error
	looking.Go(func() { equipped, unfit = s.Machine.equip(s.log) })
	closeQueue, err := s.connect(ctx)
	looking.Wait()
	if unfit == nil {
		defer equipped.close(s.log)
	}
	if err != nil || unfit != nil {
		if err == nil {
			closeQueue()
		}
		if unfit == nil && ctx.Err() != nil {
			return nil // somebody changed their mind
		}
		return errors.Join(unfit, err)
	}
	defer closeQueue()
	s.isolation = equipped.isolation
	if err := equipped.equipContainers(s.Machine, s.Name, s.Slots, s.alive, s.log); err != nil {
		return err
	}

	s.enter("looking at streams and buckets")
	topology := queue.Topology{Names: s.client.Names, Pools: s.Pools, Replicas: s.Replicas}
	differences, err := s.client.Ensure(ctx, topology)
	if err != nil {
		return err
	}
	for _, d := range differences {
		s.log.Warn("the server's set-up is not as recommended", "difference", d.String())
	}
	s.enter("reading the catalogue")
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := s.compose(equipped, topology, metrics); err != nil {
		return err
	}
	return s.serve(ctx, hurry)
}

// connect starts the embedded server, if there is to be one, and connects. A
// server that is not there yet is waited for.
func (s *service) connect(ctx context.Context) (closeAll func(), err error) {
	s.enter("waiting for NATS")
	opts := s.Connection
	opts.Wait, opts.Log = true, s.log
	stop := func() {}
	if s.Embedded != nil {
		s.Embedded.Log = s.log
		server, err := queue.StartEmbedded(*s.Embedded)
		if err != nil {
			return nil, err
		}
		stop = server.Shutdown
		opts = server.Options(opts)
		s.log.Info("embedded JetStream server, clients need its token", "url", server.URL(), "token", tokenFile(s.Embedded.DataDir))
	}
	if s.client, err = queue.Connect(ctx, opts); err != nil {
		stop()
		return nil, command.ConnectError(err)
	}
	return func() { s.client.Close(); stop() }, nil
}

// tokenFile is where the embedded server keeps its token.
func tokenFile(dataDir string) string {
	file := filepath.Join(dataDir, "token")
	if absolute, err := filepath.Abs(file); err == nil {
		return absolute
	}
	return file
}

// open opens the catalogue.
func (s *service) open(ctx context.Context) (err error) {
	s.catalogue, err = catalog.Open(ctx, catalog.Options{
		Dir: s.Catalog, JetStream: s.client.JetStream(), Bucket: s.client.Names.CatalogBucket(),
		Projects: s.Projects, Log: s.log,
	})
	if err != nil {
		return command.Usagef("%w", err)
	}
	return nil
}

// serve follows the catalogue, registers the worker and consumes.
func (s *service) serve(ctx, hurry context.Context) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var following conc.WaitGroup
	defer following.Wait()
	defer stop()
	following.Go(func() { s.catalogue.Run(background) })
	select {
	case <-s.catalogue.Ready():
	case <-ctx.Done():
		return nil
	}
	following.Go(func() { s.client.Register(background, s.register) })
	s.enter()
	s.log.Info("ready", "worker", s.Name, "pools", s.Pools, "slots", s.Slots, "isolation", s.isolation,
		"after", time.Since(s.started).Round(time.Millisecond))
	if s.ready != nil {
		s.ready(s)
	}
	if err := s.consumer.Run(ctx, hurry); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	s.log.Info("drained")
	return nil
}

// alive reports whether a worker serves; in doubt it does.
func (s *service) alive(worker string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), aliveTimeout)
	defer cancel()
	workers, err := s.client.Workers(ctx)
	return err != nil || slices.ContainsFunc(workers, func(w queue.Worker) bool { return w.Name == worker })
}

// aliveTimeout bounds one look at the registry of workers.
const aliveTimeout = 5 * time.Second

// register is what other programs see of this worker.
func (s *service) register() queue.Worker {
	return queue.Worker{
		Name: s.Name, Pools: s.Pools, Slots: s.Slots, Running: s.consumer.Running(), Version: command.Version(),
		Isolation: s.isolation, Started: s.started, Draining: s.consumer.Draining(),
	}
}
