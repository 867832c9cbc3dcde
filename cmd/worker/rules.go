package main

import (
	"context"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/tool"
)

// rules are what the operator lays down in the catalogue, for the consumer.
type rules struct{ catalogue *catalog.Source }

var _ consume.Rules = rules{}

// Paused implements consume.Rules.
func (r rules) Paused(pool, project, tool string) bool {
	return r.catalogue.Snapshot().Paused(pool, project, tool)
}

// ProjectBound implements consume.Rules.
func (r rules) ProjectBound(project string) int {
	p, ok := r.catalogue.Snapshot().Project(project)
	if !ok {
		return 0
	}
	return p.Concurrency
}

// Tool implements consume.Rules.
func (r rules) Tool(ctx context.Context, name string) (*tool.Definition, bool) {
	if d, ok := r.catalogue.Snapshot().Tool(name); ok {
		return d, true
	}
	again, err := r.catalogue.LookUp(ctx, catalog.KindTool, name)
	if err != nil {
		return nil, false // the executor asks again and says why
	}
	return again.Tool(name)
}
