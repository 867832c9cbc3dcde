package trace

import (
	"context"
	"slices"
	"sync"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// Collector is a span processor that keeps ended spans in memory, by trace.
// It is for programs that show a trace themselves; it forgets nothing.
type Collector struct {
	mu    sync.Mutex
	spans map[oteltrace.TraceID][]sdktrace.ReadOnlySpan
	ended chan struct{} // closed and replaced at every end of a span
}

var _ sdktrace.SpanProcessor = (*Collector)(nil)

// NewCollector returns an empty Collector.
func NewCollector() *Collector {
	return &Collector{spans: make(map[oteltrace.TraceID][]sdktrace.ReadOnlySpan), ended: make(chan struct{})}
}

// OnStart implements sdktrace.SpanProcessor.
func (c *Collector) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements sdktrace.SpanProcessor.
func (c *Collector) OnEnd(s sdktrace.ReadOnlySpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := s.SpanContext().TraceID()
	c.spans[id] = append(c.spans[id], s)
	close(c.ended)
	c.ended = make(chan struct{})
}

// Shutdown implements sdktrace.SpanProcessor.
func (c *Collector) Shutdown(context.Context) error { return nil }

// ForceFlush implements sdktrace.SpanProcessor.
func (c *Collector) ForceFlush(context.Context) error { return nil }

// Trace returns the ended spans of a trace, earliest start first.
func (c *Collector) Trace(id oteltrace.TraceID) []sdktrace.ReadOnlySpan {
	c.mu.Lock()
	spans := slices.Clone(c.spans[id])
	c.mu.Unlock()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return spans
}

// Wait blocks until a span with this name of the trace has ended, or ctx is over.
func (c *Collector) Wait(ctx context.Context, id oteltrace.TraceID, name string) error {
	for {
		c.mu.Lock()
		ended := c.ended
		found := slices.ContainsFunc(c.spans[id], func(s sdktrace.ReadOnlySpan) bool { return s.Name() == name })
		c.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
