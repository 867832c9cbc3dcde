package event_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	ce "github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

func TestEncodeRequest(t *testing.T) {
	m, err := event.EncodeRequest(full(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	want := event.Message{
		Subject: "tools.request.gpu.high.p-1",
		Header:  map[string][]string{"Content-Type": {"application/cloudevents+json"}, "Nats-Msg-Id": {"p-1/r-1"}},
	}
	if diff := cmp.Diff(want, event.Message{Subject: m.Subject, Header: m.Header}); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(full(), mustDecode(t, m), sameTime); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	var data struct{ Data json.RawMessage }
	if err := json.Unmarshal(m.Data, &data); err != nil {
		t.Fatal(err)
	}
	var got, sent any
	_ = json.Unmarshal(data.Data, &got)
	_ = json.Unmarshal([]byte(strings.NewReplacer("Container", "container", "HOST", "host").Replace(fullData)), &sent)
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

// The SDK of CloudEvents reads what is written here.
func TestEncodedRequestIsACloudEvent(t *testing.T) {
	m, err := event.EncodeRequest(full(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	e := validated(t, m)
	mustSatisfy(t, schemas.RequestEvent, m.Data)
	if e.ID() != "r-1" || e.Source() != "/planner" || e.Type() != event.TypeRequest || e.Subject() != "sum" || !e.Time().Equal(full().Time) ||
		e.DataContentType() != "application/json" || e.Extensions()["traceparent"] != traceParent || e.Extensions()["correlationid"] != "c 1" {
		t.Errorf("event %s", e)
	}
}

// validated is a message as the SDK of CloudEvents reads it.
func validated(t *testing.T, m event.Message) ce.Event {
	t.Helper()
	var e ce.Event
	if err := json.Unmarshal(m.Data, &e); err != nil {
		t.Fatalf("the SDK cannot read %s: %v", m.Data, err)
	}
	if err := e.Validate(); err != nil {
		t.Fatalf("the SDK refuses %s: %v", m.Data, err)
	}
	return e
}

// What the SDK of CloudEvents writes is read here.
func TestEventsOfTheSDK(t *testing.T) {
	e := ce.New()
	e.SetID("r-1")
	e.SetSource("https://planner.example/agents/1")
	e.SetType(event.TypeRequest)
	e.SetTime(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	e.SetExtension("correlationid", "c")
	for name, data := range map[string]any{
		"an object":  map[string]any{"project": "p-1", "tool": "t", "input": map[string]any{"n": 1}},
		"JSON bytes": json.RawMessage(`{"project":"p-1","tool":"t","input":{"n":1}}`),
	} {
		if err := e.SetData(ce.ApplicationJSON, data); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		q := mustDecode(t, inBody(string(body)))
		if q.Tool != "t" || q.CorrelationID != "c" || string(q.Input) != `{"n":1}` || !q.Time.Equal(e.Time()) {
			t.Errorf("%s: %+v", name, q)
		}
	}
	e.DataBase64 = true
	body, _ := json.Marshal(e)
	if !strings.Contains(string(body), "data_base64") {
		t.Fatalf("no base64 in %s", body)
	}
	if q := mustDecode(t, inBody(string(body))); q.Tool != "t" {
		t.Errorf("base64: %+v", q)
	}
}

func TestEncodeRequestRefusesWhatWouldBeRefused(t *testing.T) {
	for name, change := range map[string]func(*tool.Request){
		"/data/limits/timeout_seconds": func(q *tool.Request) { q.Limits.TimeoutSeconds = -1 },
		"/source":                      func(q *tool.Request) { q.Source = "" },
		"/data: expected exactly one":  func(q *tool.Request) { q.Tool = "t" },
		"/data/outputs/0":              func(q *tool.Request) { q.Outputs = []string{"\x00"} },
		"/data/input/path":             func(q *tool.Request) { q.Input = json.RawMessage(`{"path":"\u0000"}`) },
		"id \"a b\"":                   func(q *tool.Request) { q.ID = "a b" },
		"project in the subject":       func(q *tool.Request) { q.Project = "" },
		"priority in the subject":      func(q *tool.Request) { q.Priority = "urgent" },
		"encode request data":          func(q *tool.Request) { q.Input = json.RawMessage(`{`) },
	} {
		q := full()
		change(q)
		if m, err := event.EncodeRequest(q, prefix); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, expected %q; message %s", err, name, m.Data)
		}
	}
}

func TestDecodeData(t *testing.T) {
	q, err := event.DecodeData([]byte(fullData))
	if err != nil || q.Inline.Name != "sum" || q.ID != "" {
		t.Errorf("error %v, request %+v", err, q)
	}
	_, err = event.DecodeData([]byte(`{"project"`))
	var e *tool.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "no JSON") {
		t.Errorf("error %v", err)
	}
}
