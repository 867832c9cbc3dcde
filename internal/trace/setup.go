package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/log"
	lognoop "go.opentelemetry.io/otel/log/noop"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	oteltrace "go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// ServiceName is the service.name of those who set none.
const ServiceName = "toolworker"

// shutdownTimeout bounds the last export.
const shutdownTimeout = 5 * time.Second

// Config says what a program adds to the standard OTEL_* variables.
type Config struct {
	Version  string // service.version
	Instance string // service.instance.id, the worker's name
	// Prometheus collects metrics for Telemetry.Handler, whatever
	// OTEL_METRICS_EXPORTER says.
	Prometheus bool
	// SpanProcessors see every span, whatever OTEL_TRACES_EXPORTER says.
	SpanProcessors []sdktrace.SpanProcessor
}

// Telemetry holds the providers. Those that nobody asked for are no-ops.
type Telemetry struct {
	Tracer oteltrace.TracerProvider
	Meter  metric.MeterProvider
	Logger log.LoggerProvider
	// Logs says that log records are exported.
	Logs bool

	registry *prometheus.Registry
	stop     []func(context.Context) error
}

// Setup makes the providers that the standard OTEL_* variables ask for. A
// signal is exported when its OTEL_<SIGNAL>_EXPORTER or an OTLP endpoint is
// set. The error names the variable that cannot be understood.
func Setup(ctx context.Context, cfg Config) (*Telemetry, error) {
	t := &Telemetry{
		Tracer: tracenoop.NewTracerProvider(),
		Meter:  metricnoop.NewMeterProvider(),
		Logger: lognoop.NewLoggerProvider(),
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("describe this process for OpenTelemetry: %w", err)
	}
	for _, setup := range []func(context.Context, Config, *resource.Resource) error{t.traces, t.metrics, t.logs} {
		if err := setup(ctx, cfg, res); err != nil {
			return nil, errors.Join(err, t.Shutdown(ctx))
		}
	}
	return t, nil
}

// Shutdown exports what is left and ends every exporter, within five seconds,
// also when ctx is over. It is idempotent.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	t.stop = nil
	return errors.Join(errs...)
}

// Handler serves the metrics in the Prometheus text format; nil when
// Config.Prometheus was not set.
func (t *Telemetry) Handler() http.Handler {
	if t.registry == nil {
		return nil
	}
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{})
}

func (t *Telemetry) traces(ctx context.Context, cfg Config, res *resource.Resource) error {
	exporter, err := newSpanExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up the span exporter (%s): %w", settings("TRACES"), err)
	}
	if exporter == nil && len(cfg.SpanProcessors) == 0 {
		return nil
	}
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	if exporter != nil {
		opts = append(opts, sdktrace.WithSpanProcessor(newBatch(exporter)))
	}
	for _, p := range cfg.SpanProcessors {
		opts = append(opts, sdktrace.WithSpanProcessor(p))
	}
	provider := sdktrace.NewTracerProvider(opts...)
	t.Tracer, t.stop = provider, append(t.stop, provider.Shutdown)
	return nil
}

func (t *Telemetry) metrics(ctx context.Context, cfg Config, res *resource.Resource) error {
	reader, err := newMetricReader(ctx)
	if err != nil {
		return fmt.Errorf("set up the metric reader (%s): %w", settings("METRICS"), err)
	}
	opts := []sdkmetric.Option{sdkmetric.WithResource(res), sdkmetric.WithView(durationView())}
	if reader != nil {
		opts = append(opts, sdkmetric.WithReader(reader))
	}
	if cfg.Prometheus {
		t.registry = prometheus.NewRegistry()
		t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		prom, err := promexporter.New(promexporter.WithRegisterer(t.registry), promexporter.WithoutScopeInfo())
		if err != nil {
			return fmt.Errorf("set up the Prometheus exporter: %w", err)
		}
		opts = append(opts, sdkmetric.WithReader(prom))
	}
	if reader == nil && !cfg.Prometheus {
		return nil
	}
	provider := sdkmetric.NewMeterProvider(opts...)
	t.Meter, t.stop = provider, append(t.stop, provider.Shutdown)
	return nil
}

func (t *Telemetry) logs(ctx context.Context, _ Config, res *resource.Resource) error {
	exporter, err := newLogExporter(ctx)
	if err != nil {
		return fmt.Errorf("set up the log exporter (%s): %w", settings("LOGS"), err)
	}
	if exporter == nil {
		return nil
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithResource(res), sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)))
	t.Logger, t.Logs, t.stop = provider, true, append(t.stop, provider.Shutdown)
	return nil
}

// newResource describes this process; OTEL_RESOURCE_ATTRIBUTES and
// OTEL_SERVICE_NAME win over what we say.
func newResource(ctx context.Context, cfg Config) (*resource.Resource, error) {
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithProcessPID(),
		resource.WithAttributes(
			semconv.ServiceName(ServiceName),
			semconv.ServiceVersion(cmp.Or(cfg.Version, "unknown")),
		),
		resource.WithAttributes(instance(cfg.Instance)...),
		resource.WithFromEnv(),
	)
	if errors.Is(err, resource.ErrSchemaURLConflict) {
		err = nil // the attributes are merged all the same
	}
	return res, err
}
