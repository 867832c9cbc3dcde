package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	sdklog "go.opentelemetry.io/otel/sdk/log"
)

func TestLoggerFormats(t *testing.T) {
	clean(t)
	tel := setup(t, Config{})
	ctx := Extract(t.Context(), nil, parentA, "")
	var buf bytes.Buffer

	logger, err := tel.NewLogger(&buf, LogConfig{Format: "json", Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	logger.DebugContext(ctx, "unseen")
	logger.With("a", 1, "queued", 1500*time.Microsecond).WithGroup("g").InfoContext(ctx, "settled", "b", 2)
	var got map[string]any
	if err := json.Unmarshal(buf.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, buf.String())
	}
	if got["msg"] != "settled" || got["a"] != 1.0 || got["queued_ms"] != 1.5 || !strings.Contains(buf.String(), `"trace_id":"0af7651916cd43dd8448eb211c80319c"`) {
		t.Errorf("record %s", buf.String())
	}

	buf.Reset()
	logger, err = tel.NewLogger(&buf, LogConfig{Format: "text", Level: slog.LevelDebug})
	if err != nil {
		t.Fatal(err)
	}
	logger.Debug("seen")
	if got := buf.String(); !strings.Contains(got, "level=DEBUG msg=seen") || strings.Contains(got, "trace_id") {
		t.Errorf("record %s", got)
	}

	if _, err := tel.NewLogger(&buf, LogConfig{Format: "xml"}); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("error %v", err)
	}
}

// records is a log exporter that keeps what it gets.
type records struct{ bodies []string }

func (r *records) Export(_ context.Context, recs []sdklog.Record) error {
	for _, rec := range recs {
		r.bodies = append(r.bodies, rec.Body().AsString()+" "+rec.TraceID().String())
	}
	return nil
}
func (r *records) Shutdown(context.Context) error   { return nil }
func (r *records) ForceFlush(context.Context) error { return nil }

func TestLogRecordsAreBridged(t *testing.T) {
	var exported records
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewSimpleProcessor(&exported)))
	tel := &Telemetry{Logger: provider, Logs: true}
	var buf bytes.Buffer
	logger, err := tel.NewLogger(&buf, LogConfig{Format: "text", Level: slog.LevelInfo})
	if err != nil {
		t.Fatal(err)
	}
	ctx := Extract(t.Context(), nil, parentA, "")
	logger.With("a", 1).WithGroup("g").DebugContext(ctx, "too fine")
	logger.InfoContext(ctx, "settled")
	if want := "settled 0af7651916cd43dd8448eb211c80319c"; len(exported.bodies) != 1 || exported.bodies[0] != want {
		t.Errorf("exported %q, want %q", exported.bodies, want)
	}
	if !strings.Contains(buf.String(), "msg=settled") {
		t.Errorf("written: %s", buf.String())
	}
}

func TestExportErrorsAreLogged(t *testing.T) {
	var buf bytes.Buffer
	ReportErrors(slog.New(slog.NewTextHandler(&buf, nil)))
	otel.Handle(context.DeadlineExceeded)
	if got := buf.String(); !strings.Contains(got, "export telemetry") || !strings.Contains(got, "deadline") {
		t.Errorf("logged %q", got)
	}
}
