package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/trace"
)

// Contexts of a planner that was not built with this project.
const (
	startedIn = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" // the trace that the request started in
	lastHop   = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// serveTraced runs a worker whose spans are collected, and ends it with the test.
func serveTraced(t *testing.T, processors ...sdktrace.SpanProcessor) *queue.Client {
	t.Helper()
	for _, name := range []string{"OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT"} {
		t.Setenv(name, "")
	}
	telemetry, err := trace.Setup(t.Context(), trace.Config{SpanProcessors: processors})
	if err != nil {
		t.Fatal(err)
	}
	catalogue, _ := newCatalogue(t)
	dataDir := t.TempDir()
	ready := make(chan *service, 1)
	s := &service{
		settings: settings{
			Name: "traced", Pools: []string{"default"}, Slots: 2, Catalog: catalogue, Replicas: 1,
			Embedded:   &queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dataDir},
			Connection: queue.Options{Name: "traced"},
			Machine:    machine{Engine: "off", Weakest: true},
			ready:      func(s *service) { ready <- s },
		},
		log: slog.New(slog.DiscardHandler), telemetry: telemetry,
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx, t.Context()) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal("the worker did not start")
	}
	return s.client
}

// askTraced sends a request with both contexts, the last hop's in a header of
// any letter case, and returns the message of its result.
func askTraced(t *testing.T, c *queue.Client) event.Message {
	t.Helper()
	r := inline("r-secret-1", "print(input_data['word'])")
	r.Source, r.TraceParent, r.Input = "/planner", startedIn, []byte(`{"word":"s3cret"}`)
	m, err := event.EncodeRequest(r, c.Names.Prefix())
	if err != nil {
		t.Fatal(err)
	}
	m.Header["TraceParent"] = []string{lastHop}
	if _, err := c.Publish(t.Context(), r.Project, r.ID, m); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	result, err := c.WaitResult(ctx, r.Project, r.ID)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestOneTraceFromPlannerToResult(t *testing.T) {
	collector := trace.NewCollector()
	c := serveTraced(t, collector)
	result := askTraced(t, c)
	doc, err := event.DecodeResult(result)
	if err != nil {
		t.Fatal(err)
	}
	if doc.Event.TraceParent != startedIn {
		t.Errorf("the result's extension is %q: expected that of the request", doc.Event.TraceParent)
	}
	id, err := oteltrace.TraceIDFromHex(startedIn[3:35])
	if err != nil {
		t.Fatal(err)
	}
	header := result.Header["traceparent"]
	if len(header) != 1 || !strings.Contains(header[0], id.String()) || header[0] == lastHop {
		t.Errorf("the result's header is %q: expected a context of the execution in the same trace", header)
	}

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := collector.Wait(ctx, id, trace.SpanProcessRequest); err != nil {
		t.Fatal(err)
	}
	byName := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range collector.Trace(id) {
		byName[s.Name()] = s
		for _, kv := range s.Attributes() {
			if strings.Contains(kv.Value.String(), "s3cret") {
				t.Errorf("%s: %s holds the input or the output", s.Name(), kv.Key)
			}
		}
		if strings.Contains(s.Name(), "demo") || strings.Contains(s.Name(), "r-secret") {
			t.Errorf("the name %q holds a project or an id", s.Name())
		}
	}
	const execute = "execute_tool inline"
	for name, parent := range map[string]string{
		execute: trace.SpanProcessRequest, trace.SpanResolve: execute, trace.SpanMapPaths: execute,
		trace.SpanExec: execute, trace.SpanSync: execute,
		trace.SpanSendResult: trace.SpanProcessRequest, trace.SpanAckRequest: trace.SpanProcessRequest,
	} {
		s, p := byName[name], byName[parent]
		if s == nil || p == nil || s.Parent().SpanID() != p.SpanContext().SpanID() {
			t.Errorf("%q is not a child of %q", name, parent)
		}
	}
	process := byName[trace.SpanProcessRequest]
	if got := process.Parent().SpanID().String(); got != lastHop[36:52] {
		t.Errorf("the parent of %q is %s: expected the last hop", process.Name(), got)
	}
	if len(process.Links()) != 1 {
		t.Errorf("links %v", process.Links())
	}
}

func TestTraceIsContinuedWhereTracingIsOff(t *testing.T) {
	result := askTraced(t, serveTraced(t))
	doc, err := event.DecodeResult(result)
	if err != nil {
		t.Fatal(err)
	}
	if header := result.Header["traceparent"]; doc.Event.TraceParent != startedIn || len(header) != 1 || header[0] != lastHop {
		t.Errorf("extension %q, header %q", doc.Event.TraceParent, header)
	}
}
