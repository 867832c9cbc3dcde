package event_test

import (
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	traceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	fullData    = `{"project":"p-1",
		"inline":{"name":"sum","source":"custom","code":"print(input_data['a'] + 1)","capability":{"writes":true,"network":true}},
		"input":{"path":"/srv/projects/p-1/src/main.py","count":9007199254740993},
		"tool_env":"Container","plan":{"id":"plan-7","execution_environment":"HOST","read_only":true},
		"limits":{"timeout_seconds":1.5,"max_output_bytes":1048576,"memory_bytes":268435456,"cpus":0.5,"cpu_seconds":10,"pids":64,
			"file_size_bytes":67108864,"open_files":256},
		"outputs":["/workspace/build/output.txt"],"retry":{"max_attempts":3,"backoff_seconds":2},"stream":true}`
)

// full is the request of fullData with all attributes.
func full() *tool.Request {
	return &tool.Request{
		Envelope: tool.Envelope{
			ID: "r-1", Source: "/planner", Time: time.Date(2026, 5, 1, 12, 0, 0, 500, time.UTC), CorrelationID: "c 1",
			ExpiryTime: time.Date(2026, 5, 1, 13, 0, 0, 0, time.UTC), TraceParent: traceParent, TraceState: "a=b",
		},
		Pool: "gpu", Priority: tool.High, Project: "p-1",
		Inline: &tool.Inline{Name: "sum", Source: "custom", Code: "print(input_data['a'] + 1)",
			Capability: tool.Capability{Writes: true, Network: true}},
		Input:   json.RawMessage(`{"path":"/srv/projects/p-1/src/main.py","count":9007199254740993}`),
		ToolEnv: tool.Container, Plan: tool.Plan{ID: "plan-7", ExecutionEnvironment: tool.Host, ReadOnly: true},
		Limits: tool.Limits{TimeoutSeconds: 1.5, MaxOutputBytes: 1048576, MemoryBytes: 268435456, CPUs: 0.5, CPUSeconds: 10, PIDs: 64,
			FileSizeBytes: 67108864, OpenFiles: 256},
		Outputs: []string{"/workspace/build/output.txt"},
		Retry:   tool.Retry{MaxAttempts: 3, BackoffSeconds: 2},
		Stream:  true,
	}
}

const fullAttributes = `"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","subject":"sum",
	"time":"2026-05-01T14:00:00.0000005+02:00","datacontenttype":"application/json","traceparent":"` + traceParent + `","tracestate":"a=b",
	"correlationid":"c 1","causationid":"elsewhere","expirytime":"2026-05-01T13:00:00Z","someextension":7,"another":true,"unset":null`

func fullInHeaders(name func(string) string) event.Message {
	m := event.Message{Subject: "tools.request.gpu.high.p-1", Header: map[string][]string{}, Data: []byte(fullData)}
	for attribute, value := range map[string]string{
		"ce-specversion": "1.0", "ce-id": "r%2d1", "ce-source": "%2Fplanner", "ce-type": "dev.toolworker.request.v1", "ce-subject": "sum",
		"ce-time": "2026-05-01T14:00:00.0000005+02:00", "ce-datacontenttype": "application/json; charset=utf-8",
		"ce-traceparent": traceParent, "ce-tracestate": "a=b", "ce-correlationid": "c%201", "ce-causationid": "elsewhere",
		"ce-expirytime": "2026-05-01T13:00:00Z", "ce-someextension": "%", "traceparent": "another hop", "Nats-Msg-Id": "p-1/r-1",
	} {
		m.Header[name(attribute)] = []string{value}
	}
	return m
}

// sameTime compares times as instants, and what is JSON as text.
var sameTime = cmp.Options{
	cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b json.RawMessage) bool { return string(a) == string(b) }),
}

func TestEveryFormGivesTheSameRequest(t *testing.T) {
	structured := func(contentType, header string, body string) event.Message {
		m := event.Message{Subject: "tools.request.gpu.high.p-1", Header: map[string][]string{}, Data: []byte(body)}
		if header != "" {
			m.Header[header] = []string{contentType}
		}
		return m
	}
	body := `{` + fullAttributes + `,"data":` + fullData + `}`
	encoded := base64.StdEncoding.EncodeToString([]byte(fullData))
	for name, m := range map[string]event.Message{
		"structured":                      structured("application/cloudevents+json", "Content-Type", body),
		"structured in another case":      structured("Application/CloudEvents+JSON; charset=UTF-8", "cONTENT-tYPE", body),
		"structured without a format":     structured("application/cloudevents", "content-type", body),
		"a JSON body without headers":     structured("", "", body),
		"a JSON body of another type":     structured("application/json", "Content-Type", body),
		"data before the attributes":      structured("", "", `{"data":`+fullData+`,`+fullAttributes+`}`),
		"data_base64":                     structured("", "", `{`+fullAttributes+`,"data_base64":"`+encoded+`"}`),
		"data_base64 and no data":         structured("", "", `{"data":null,`+fullAttributes+`,"data_base64":"`+encoded+`"}`),
		"data and no data_base64":         structured("", "", `{"data_base64":null,`+fullAttributes+`,"data":`+fullData+`}`),
		"names with escapes":              structured("", "", `{`+fullAttributes+`,"d\u0061ta":`+fullData+`}`),
		"white space":                     structured("", "", "\r\n\t {"+fullAttributes+" ,\n \"data\" : "+fullData+" }\n"),
		"binary":                          fullInHeaders(func(s string) string { return s }),
		"binary in upper case":            fullInHeaders(upper),
		"binary in title case":            fullInHeaders(title),
		"binary with a reference as well": withHeader(fullInHeaders(upper), "ce-dataref", "anything"),
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(full(), mustDecode(t, m), sameTime); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	want := &tool.Request{
		Envelope: tool.Envelope{ID: "r-1", Source: "/planner", CorrelationID: "r-1"},
		Pool:     "default", Priority: tool.Normal, Project: "p-1", Tool: "t", Input: json.RawMessage(`{}`),
	}
	if diff := cmp.Diff(want, mustDecode(t, withData(minimal)), sameTime); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	want.Tool, want.Inline = "", &tool.Inline{Source: "custom"}
	if diff := cmp.Diff(want, mustDecode(t, withData(`{"project":"p-1","inline":{}}`)), sameTime); diff != "" {
		t.Errorf("inline request (-want +got):\n%s", diff)
	}
}

// CASES 15: numbers beyond 2^53 arrive intact.
func TestInputArrivesAsSent(t *testing.T) {
	for _, input := range []string{
		`{"n":9007199254740993}`, `{"n":-9007199254740993,"f":0.1000000000000000055511151231257827}`, `{"big":1e400,"tiny":1e-400}`,
		`{ "b" : 1 , "a" : [ ] }`, `{"s":"\u00e9é\u0000\ud83d\ude00","text":"\u0000"}`, `{"path":null,"a_path":7,"b_file":{"c":"\u0000"}}`,
		`{"":{"":[]}}`, `{"Path":"\u0000","paths":"\u0000","path_":"\u0000"}`,
	} {
		q := mustDecode(t, withData(`{"project":"p-1","tool":"t","input":`+input+`}`))
		if string(q.Input) != input {
			t.Errorf("input %s, sent %s", q.Input, input)
		}
	}
}

func TestNumbersHoweverWritten(t *testing.T) {
	q := mustDecode(t, withData(`{"project":"p-1","tool":"t",
		"limits":{"pids":64.0,"memory_bytes":1e6,"open_files":12.5e1,"max_output_bytes":9007199254740991,"cpus":1e-9,"timeout_seconds":1e9,
		"cpu_seconds":10E-1},"retry":{"max_attempts":1.0e0,"backoff_seconds":0.0}}`))
	want := tool.Limits{PIDs: 64, MemoryBytes: 1000000, OpenFiles: 125, MaxOutputBytes: 1<<53 - 1, CPUs: 1e-9, TimeoutSeconds: 1e9, CPUSeconds: 1}
	if diff := cmp.Diff(want, q.Limits); diff != "" || q.Retry.MaxAttempts != 1 {
		t.Errorf("retry %+v, limits (-want +got):\n%s", q.Retry, diff)
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]time.Time{
		"2026-05-01T12:00:00Z":        time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		"2026-05-01t12:00:00.25z":     time.Date(2026, 5, 1, 12, 0, 0, 250e6, time.UTC),
		"2026-05-01T12:00:00-00:30":   time.Date(2026, 5, 1, 12, 30, 0, 0, time.UTC),
		"2016-12-31T23:59:60Z":        time.Date(2017, 1, 1, 0, 0, 0, 0, time.UTC),
		"2017-01-01T00:59:60.5+01:00": time.Date(2017, 1, 1, 0, 0, 0, 500e6, time.UTC),
	} {
		q := mustDecode(t, inBody(`{"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","expirytime":"`+
			text+`","data":`+minimal+`}`))
		if !q.ExpiryTime.Equal(want) {
			t.Errorf("%s is %v, expected %v", text, q.ExpiryTime, want)
		}
	}
	past := mustDecode(t, inHeaders(minimal, "ce-expirytime", "0001-01-01T00:00:00Z"))
	if !past.Expired(time.Now()) {
		t.Error("the year 1 has not passed")
	}
}

func TestPrefixes(t *testing.T) {
	m := withData(minimal)
	m.Subject = "a.b.request.default.low.p-1"
	q, err := event.DecodeRequest(m, "a.b")
	if err != nil || q.Priority != tool.Low {
		t.Errorf("request %+v, error %v", q, err)
	}
}
