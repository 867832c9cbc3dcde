package trace

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/attribute"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Sizes with which 5,000 requests a second lose no span; the standard
// defaults lose four in ten. OTEL_BSP_* variables win over them.
const (
	spanQueue    = 16384
	spanBatch    = 2048
	spanInterval = time.Second
)

// exported reports whether the environment asks for a signal ("TRACES",
// "METRICS", "LOGS"): autoexport by itself would export to localhost when
// nothing is set.
func exported(signal string) bool {
	if disabled, err := strconv.ParseBool(os.Getenv("OTEL_SDK_DISABLED")); err == nil && disabled {
		return false
	}
	switch os.Getenv("OTEL_" + signal + "_EXPORTER") {
	case "none":
		return false
	case "":
		return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" ||
			os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
	}
	return true
}

// settings names the variables that choose the exporter of a signal, with
// their values, for an error. Headers, which may hold secrets, are not among them.
func settings(signal string) string {
	var set []string
	for _, name := range []string{
		"OTEL_" + signal + "_EXPORTER",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL",
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_" + signal + "_ENDPOINT",
	} {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	return strings.Join(set, " ")
}

// newSpanExporter returns nil when no traces are asked for.
func newSpanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if !exported("TRACES") {
		return nil, nil
	}
	return autoexport.NewSpanExporter(ctx)
}

// newMetricReader returns nil when no metrics are asked for.
func newMetricReader(ctx context.Context) (sdkmetric.Reader, error) {
	if !exported("METRICS") {
		return nil, nil
	}
	return autoexport.NewMetricReader(ctx)
}

// newLogExporter returns nil when no logs are asked for.
func newLogExporter(ctx context.Context) (sdklog.Exporter, error) {
	if !exported("LOGS") {
		return nil, nil
	}
	return autoexport.NewLogExporter(ctx)
}

func newBatch(exporter sdktrace.SpanExporter) sdktrace.SpanProcessor {
	var opts []sdktrace.BatchSpanProcessorOption
	for name, opt := range map[string]sdktrace.BatchSpanProcessorOption{
		"OTEL_BSP_MAX_QUEUE_SIZE":        sdktrace.WithMaxQueueSize(spanQueue),
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": sdktrace.WithMaxExportBatchSize(spanBatch),
		"OTEL_BSP_SCHEDULE_DELAY":        sdktrace.WithBatchTimeout(spanInterval),
	} {
		if os.Getenv(name) == "" {
			opts = append(opts, opt)
		}
	}
	return sdktrace.NewBatchSpanProcessor(exporter, opts...)
}

func instance(name string) []attribute.KeyValue {
	if name == "" {
		return nil
	}
	return []attribute.KeyValue{semconv.ServiceInstanceID(name)}
}
