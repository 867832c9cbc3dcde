package main

import (
	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/trace"
)

// compose puts the worker together, innermost first: the backends run
// processes, the pipeline turns requests into tasks for them, decorators go
// around it with one concern each, and the consumer draws requests from the
// queue and settles them.
func (s *service) compose(e *equipment, topology queue.Topology, metrics *trace.Metrics) error {
	spans := trace.NewSpans(s.telemetry.Tracer, s.client.Names.Prefix())

	executor, err := exec.New(exec.Config{
		Catalogue:        s.catalogue,
		Host:             e.host,
		HostIsolation:    e.isolation,
		Container:        e.container,
		ContainerRuntime: e.runtime,
		Spans:            spans,
		Live:             consume.LiveOutput,
	})
	if err != nil {
		return err
	}
	executor = exec.Logged(executor, s.log)
	executor = exec.Traced(executor, spans, e.runtime)
	executor = exec.Recovered(executor, s.log)

	s.consumer, err = consume.New(consume.Config{
		Source:        s.client.Source(topology, s.Slots),
		Executor:      executor,
		Answers:       s.client.Answers(),
		DeadLetters:   s.client,
		Attempts:      s.client.Attempts(),
		Cancellations: s.client.Cancellations(),
		Finder:        s.client,
		Inputs:        s.client.Inputs(),
		Rules:         rules{s.catalogue},
		Live:          s.client.Live(),
		Pools:         s.Pools,
		Slots:         s.Slots,
		ProjectSlots:  s.ProjectSlots,
		Worker:        s.Name,
		Prefix:        s.client.Names.Prefix(),
		DrainTimeout:  s.DrainTimeout,
		Spans:         spans,
		Metrics:       metrics,
		Log:           s.log,
	})
	return err
}
