package trace

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// LogConfig says how log records are written.
type LogConfig struct {
	Format string // "text" or "json"
	Level  slog.Level
}

// NewLogger returns a logger that writes to w, and to the log exporter when
// one is set up. Records with a context carry its trace and span ids.
func (t *Telemetry) NewLogger(w io.Writer, cfg LogConfig) (*slog.Logger, error) {
	opts := &slog.HandlerOptions{Level: cfg.Level}
	var h slog.Handler
	switch cfg.Format {
	case "text":
		h = slog.NewTextHandler(w, opts)
	case "json":
		opts.ReplaceAttr = milliseconds
		h = slog.NewJSONHandler(w, opts)
	default:
		return nil, fmt.Errorf("log format %q: expected text or json", cfg.Format)
	}
	h = correlated{h}
	if t.Logs {
		bridge := otelslog.NewHandler(Scope, otelslog.WithLoggerProvider(t.Logger))
		h = slog.NewMultiHandler(h, levelled{bridge, cfg.Level})
	}
	return slog.New(h), nil
}

// milliseconds gives durations in JSON their unit: "queued_ms": 1.5.
func milliseconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() != slog.KindDuration {
		return a
	}
	return slog.Float64(a.Key+"_ms", float64(a.Value.Duration())/float64(time.Millisecond))
}

// ReportErrors sends errors of exporters to logger instead of stderr. It
// holds for the whole process.
func ReportErrors(logger *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("export telemetry", "error", err)
	}))
}

// correlated adds the ids of the span in the record's context.
type correlated struct{ slog.Handler }

func (h correlated) Handle(ctx context.Context, r slog.Record) error {
	if span := oteltrace.SpanContextFromContext(ctx); span.IsValid() {
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h correlated) WithAttrs(attrs []slog.Attr) slog.Handler {
	return correlated{h.Handler.WithAttrs(attrs)}
}

func (h correlated) WithGroup(name string) slog.Handler {
	return correlated{h.Handler.WithGroup(name)}
}

// levelled drops records below a level, which the bridge does not know.
type levelled struct {
	slog.Handler
	least slog.Level
}

func (h levelled) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.least && h.Handler.Enabled(ctx, level)
}

func (h levelled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return levelled{h.Handler.WithAttrs(attrs), h.least}
}

func (h levelled) WithGroup(name string) slog.Handler {
	return levelled{h.Handler.WithGroup(name), h.least}
}
