package trace

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestMetricsInThePrometheusFormat(t *testing.T) {
	clean(t)
	tel := setup(t, Config{Prometheus: true})
	m, err := NewMetrics(tel.Meter)
	if err != nil {
		t.Fatal(err)
	}
	ctx, r := t.Context(), request()
	m.Slots(ctx, 4)
	m.Received(ctx, r.Pool, r.Priority)
	m.Received(ctx, r.Pool, r.Priority)
	m.Executed(ctx, r, &tool.Result{Duration: 30 * time.Millisecond, Metadata: tool.Metadata{Environment: &tool.Resolution{Resolved: tool.Host}}}, time.Millisecond)
	m.Settled(ctx, r.Pool, r.Priority, Answered, time.Millisecond)
	m.DeadLettered(ctx, tool.InvalidRequest)
	m.Reconnected(ctx)

	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body := rec.Body.String()
	for _, want := range []string{
		`toolworker_slots 4`, `toolworker_running{`,
		`toolworker_deliveries_total{toolworker_disposition="answered",toolworker_pool="default",toolworker_priority="high"} 1`,
		`toolworker_results_total{gen_ai_tool_name="file_read",toolworker_environment="host",toolworker_status="succeeded"} 1`,
		`toolworker_execution_duration_seconds_bucket{gen_ai_tool_name="file_read",toolworker_environment="host",toolworker_status="succeeded",le="0.05"} 1`,
		`toolworker_queue_duration_seconds_count{`, `toolworker_settle_duration_seconds_count{`,
		`toolworker_dead_letters_total{error_type="invalid_request"} 1`, `toolworker_nats_reconnects_total`,
		`go_goroutines`, `process_resident_memory_bytes`, `target_info{`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, grep(body, "toolworker"))
		}
	}
	if !strings.Contains(body, `toolworker_running{toolworker_pool="default",toolworker_priority="high"} 1`) {
		t.Errorf("running:\n%s", grep(body, "toolworker_running"))
	}
}

func TestNilMetricsRecordNothing(t *testing.T) {
	var m *Metrics
	ctx, r := t.Context(), request()
	m.Slots(ctx, 1)
	m.Received(ctx, r.Pool, r.Priority)
	m.Executed(ctx, r, &tool.Result{}, 0)
	m.Settled(ctx, r.Pool, r.Priority, Answered, 0)
	m.DeadLettered(ctx, tool.Internal)
	m.Reconnected(ctx)
}

func TestPlannersDoNotChooseLabels(t *testing.T) {
	rejected := func(code tool.Code) *tool.Result { return &tool.Result{Error: tool.Errorf(code, "x")} }
	for name, tc := range map[string]struct {
		r    *tool.Request
		res  *tool.Result
		want string
	}{
		"a tool of the catalogue": {request(), &tool.Result{}, "file_read"},
		"one that failed":         {request(), rejected(tool.ExitStatus), "file_read"},
		"input refused":           {request(), rejected(tool.InvalidInput), "file_read"},
		"unknown":                 {request(), rejected(tool.UnknownTool), "_"},
		"unknown project":         {request(), rejected(tool.UnknownProject), "_"},
		"inline":                  {&tool.Request{Inline: &tool.Inline{Name: "mine"}}, rejected(tool.TimedOut), "inline"},
	} {
		if got := toolLabel(tc.r, tc.res); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func grep(text, what string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if strings.Contains(line, what) && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
