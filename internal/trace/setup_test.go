package trace

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// clean unsets the standard variables for one test.
func clean(t *testing.T) {
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER",
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	} {
		t.Setenv(name, "")
	}
}

func setup(t *testing.T, cfg Config) *Telemetry {
	t.Helper()
	tel, err := Setup(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel
}

func TestNothingSetExportsNothing(t *testing.T) {
	for name, set := range map[string]func(*testing.T){
		"nothing": func(*testing.T) {},
		"none":    func(t *testing.T) { t.Setenv("OTEL_TRACES_EXPORTER", "none") },
		"disabled": func(t *testing.T) {
			t.Setenv("OTEL_SDK_DISABLED", "true")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			set(t)
			tel := setup(t, Config{})
			if _, ok := tel.Tracer.(tracenoop.TracerProvider); !ok {
				t.Errorf("tracer provider %T", tel.Tracer)
			}
			if tel.Logs || tel.Handler() != nil || len(tel.stop) != 0 {
				t.Errorf("something is set up: %+v", tel)
			}
		})
	}
}

func TestBadExporterNamesTheVariable(t *testing.T) {
	for _, signal := range []string{"TRACES", "METRICS", "LOGS"} {
		t.Run(signal, func(t *testing.T) {
			clean(t)
			t.Setenv("OTEL_"+signal+"_EXPORTER", "carrier-pigeon")
			_, err := Setup(t.Context(), Config{})
			if err == nil || !strings.Contains(err.Error(), "OTEL_"+signal+"_EXPORTER") || !strings.Contains(err.Error(), "carrier-pigeon") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestSpansReachACollector(t *testing.T) {
	bodies := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path == "/v1/traces" {
			bodies <- b
		}
	}))
	defer collector.Close()
	clean(t)
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", collector.URL+"/v1/traces")
	t.Setenv("OTEL_SERVICE_NAME", "planners-own")

	tel := setup(t, Config{Version: "1.2.3", Instance: "host-a-1"})
	ctx, cancel := context.WithCancel(t.Context())
	_, span := NewSpans(tel.Tracer, "tools").Stage(ctx, SpanExec)
	span.End()
	cancel() // the last export must not depend on it
	if err := tel.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := tel.Shutdown(ctx); err != nil {
		t.Errorf("a second shutdown: %v", err)
	}

	var got coltrace.ExportTraceServiceRequest
	if err := proto.Unmarshal(<-bodies, &got); err != nil {
		t.Fatal(err)
	}
	resource := got.ResourceSpans[0].Resource.String()
	for _, want := range []string{"planners-own", "1.2.3", "host-a-1", "telemetry.sdk.name"} {
		if !strings.Contains(resource, want) {
			t.Errorf("the resource lacks %q: %s", want, resource)
		}
	}
	if name := got.ResourceSpans[0].ScopeSpans[0].Spans[0].Name; name != SpanExec {
		t.Errorf("span %q", name)
	}
}

func TestServiceNameDefault(t *testing.T) {
	clean(t)
	res, err := newResource(t.Context(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Encoded(keyValues{}); !strings.Contains(got, "service.name=toolworker\n") {
		t.Errorf("resource:\n%s", got)
	}
}

func TestBatchHonoursTheStandardVariables(t *testing.T) {
	clean(t)
	t.Setenv("OTEL_TRACES_EXPORTER", "console")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "7")
	tel := setup(t, Config{})
	if len(tel.stop) != 1 {
		t.Errorf("%d providers to stop, want the tracer's alone", len(tel.stop))
	}
}

// keyValues encodes attributes a line each.
type keyValues struct{}

func (keyValues) Encode(it attribute.Iterator) string {
	var b strings.Builder
	for it.Next() {
		kv := it.Attribute()
		b.WriteString(string(kv.Key) + "=" + kv.Value.String() + "\n")
	}
	return b.String()
}

func (keyValues) ID() attribute.EncoderID { return attribute.NewEncoderID() }
