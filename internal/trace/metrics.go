package trace

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	genai "go.opentelemetry.io/otel/semconv/v1.41.0"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/toolworker/toolworker/internal/tool"
)

// Disposition is how one delivery of a request was settled.
type Disposition string

// The dispositions.
const (
	Answered        Disposition = "answered"         // its result is stored and it is acknowledged
	AlreadyAnswered Disposition = "already_answered" // somebody had answered before
	Retried         Disposition = "retried"          // given back for another attempt of the tool
	GivenBack       Disposition = "given_back"       // drained, or an infrastructure fault
	DeadLettered    Disposition = "dead_lettered"    // unreadable, or attempts used up
	Abandoned       Disposition = "abandoned"        // could not be settled: it will be delivered again
)

// Metrics records what the fleet's operator watches. A nil *Metrics records
// nothing. Projects, request ids and names that planners choose are never
// attributes, so that the number of series stays bounded by the catalogue.
type Metrics struct {
	deliveries  metric.Int64Counter
	results     metric.Int64Counter
	execution   metric.Float64Histogram
	queued      metric.Float64Histogram
	settle      metric.Float64Histogram
	running     metric.Int64UpDownCounter
	slots       metric.Int64Gauge
	reconnects  metric.Int64Counter
	deadLetters metric.Int64Counter
}

// NewMetrics makes the instruments.
func NewMetrics(provider metric.MeterProvider) (*Metrics, error) {
	meter := provider.Meter(Scope)
	var m Metrics
	var errs []error
	counter := func(dst *metric.Int64Counter, name, unit, what string) {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		*dst, errs = c, append(errs, err)
	}
	seconds := func(dst *metric.Float64Histogram, name, what string) {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what))
		*dst, errs = h, append(errs, err)
	}
	counter(&m.deliveries, "toolworker.deliveries", "{delivery}", "Deliveries of requests, by how they were settled.")
	counter(&m.results, "toolworker.results", "{result}", "Results stored, by tool, status and error code.")
	counter(&m.reconnects, "toolworker.nats.reconnects", "{reconnect}", "Connections to NATS that were lost and made again.")
	counter(&m.deadLetters, "toolworker.dead_letters", "{message}", "Messages put aside as dead letters, by code.")
	seconds(&m.execution, "toolworker.execution.duration", "Wall clock of executions.")
	seconds(&m.queued, "toolworker.queue.duration", "From the storing of a request to the start of its execution.")
	seconds(&m.settle, "toolworker.settle.duration", "From the end of an execution to the acknowledgement of its request.")
	var err error
	m.running, err = meter.Int64UpDownCounter("toolworker.running", metric.WithUnit("{request}"),
		metric.WithDescription("Requests between receipt and settlement."))
	errs = append(errs, err)
	m.slots, err = meter.Int64Gauge("toolworker.slots", metric.WithUnit("{slot}"),
		metric.WithDescription("Requests that this worker runs at once at most."))
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make the metric instruments: %w", err)
	}
	return &m, nil
}

// Slots says how many requests may run at once.
func (m *Metrics) Slots(ctx context.Context, n int) {
	if m != nil {
		m.slots.Record(ctx, int64(n))
	}
}

// Received counts a delivery as running until Settled.
func (m *Metrics) Received(ctx context.Context, pool string, priority tool.Priority) {
	if m != nil {
		m.running.Add(ctx, 1, metric.WithAttributes(lane(pool, priority)...))
	}
}

// Settled counts the end of a delivery that Received counted. settle is the
// time from the end of the execution, 0 where nothing ran.
func (m *Metrics) Settled(ctx context.Context, pool string, priority tool.Priority, d Disposition, settle time.Duration) {
	if m == nil {
		return
	}
	attrs := lane(pool, priority)
	m.running.Add(ctx, -1, metric.WithAttributes(attrs...))
	m.deliveries.Add(ctx, 1, metric.WithAttributes(append(attrs, KeyDisposition.String(string(d)))...))
	if settle > 0 {
		m.settle.Record(ctx, settle.Seconds(), metric.WithAttributes(lane(pool, priority)...))
	}
}

// Executed counts one result and its times. queued is the time from the
// storing of the request to the start.
func (m *Metrics) Executed(ctx context.Context, r *tool.Request, res *tool.Result, queued time.Duration) {
	if m == nil {
		return
	}
	attrs := []attribute.KeyValue{
		genai.GenAIToolName(toolLabel(r, res)),
		KeyStatus.String(string(res.Status())),
	}
	if e := res.Metadata.Environment; e != nil {
		attrs = append(attrs, KeyEnvironment.String(string(e.Resolved)))
	}
	if res.Error != nil {
		attrs = append(attrs, semconv.ErrorTypeKey.String(string(res.Error.Code)))
	}
	set := metric.WithAttributes(attrs...)
	m.results.Add(ctx, 1, set)
	if res.Status() != tool.StatusRejected {
		m.execution.Record(ctx, res.Duration.Seconds(), set)
	}
	if queued > 0 {
		m.queued.Record(ctx, queued.Seconds(), metric.WithAttributes(lane(r.Pool, r.Priority)...))
	}
}

// DeadLettered counts a message put aside.
func (m *Metrics) DeadLettered(ctx context.Context, code tool.Code) {
	if m != nil {
		m.deadLetters.Add(ctx, 1, metric.WithAttributes(semconv.ErrorTypeKey.String(string(code))))
	}
}

// Reconnected counts a connection to NATS that was lost and made again.
func (m *Metrics) Reconnected(ctx context.Context) {
	if m != nil {
		m.reconnects.Add(ctx, 1)
	}
}

func lane(pool string, priority tool.Priority) []attribute.KeyValue {
	return []attribute.KeyValue{KeyPool.String(pool), KeyPriority.String(string(priority))}
}

// toolLabel is the tool's name where the catalogue bounds it.
func toolLabel(r *tool.Request, res *tool.Result) string {
	switch {
	case r.Tool == "":
		return tool.InlineName
	case res.Status() == tool.StatusRejected && res.Error.Code != tool.InvalidInput:
		return "_"
	}
	return r.Tool
}

// durationView gives the histograms of seconds buckets from a millisecond to
// the ten minutes that a tool may take.
func durationView() sdkmetric.View {
	return sdkmetric.NewView(
		sdkmetric.Instrument{Name: "toolworker.*.duration"},
		sdkmetric.Stream{Aggregation: sdkmetric.AggregationExplicitBucketHistogram{
			Boundaries: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600},
		}},
	)
}
