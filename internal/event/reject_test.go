package event_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// bad are documents that neither the schema nor the code accepts, and what
// both say about them.
var bad = []struct {
	name, data string
	want       []string
}{
	{"no object", `[]`, []string{"/: is array, expected the data of a request"}},
	{"a text", `"{}"`, []string{"/: is string, expected"}},
	{"nothing in it", `{}`, []string{"/project: missing", "/: expected exactly one of tool and inline"}},
	{"neither", `{"project":"p-1"}`, []string{"/: expected exactly one of tool and inline"}},
	{"both", `{"project":"p-1","tool":"t","inline":{"code":"1"}}`, []string{"/: expected exactly one of tool and inline"}},
	{"no project", `{"tool":"t"}`, []string{"/project: missing, but required"}},
	{"unknown member", `{"project":"p-1","tool":"t","inputs":{}}`, []string{"/inputs: unknown member"}},
	{"wrong case", `{"Project":"p-1","project":"p-1","tool":"t","Tool":"t"}`, []string{"/Project: unknown member", "/Tool: unknown member"}},
	{"null", `{"project":"p-1","tool":"t","plan":null,"stream":null,"input":null,"inline":null}`,
		[]string{"/plan: is null", "/stream: is null", "/input: is null", "/inline: is null"}},
	{"types", `{"project":1,"tool":true,"input":[],"tool_env":1,"plan":[],"limits":"","outputs":{},"retry":1,"stream":"true"}`,
		[]string{"/project: is number", "/tool: is boolean", "/input: is array", "/tool_env: is number", "/plan: is array",
			"/limits: is string", "/outputs: is object", "/retry: is number", "/stream: is string"}},
	{"names", `{"project":"p 1","tool":""}`, []string{`/project: "p 1": expected 1 to 128 characters`, `/tool: "": expected 1 to 128`}},
	{"a long name", `{"project":"p-1","tool":"` + strings.Repeat("x", 129) + `"}`, []string{`/tool: "xxx`, `expected 1 to 128 characters`}},
	{"NUL in a name", `{"project":"p-1","tool":"a\u0000"}`, []string{`/tool: "a\u0000": expected`}},
	{"a newline after a name", `{"project":"p-1\n","tool":"t"}`, []string{`/project: "p-1\n": expected`}},
	{"a dot in a name", `{"project":"p-1","tool":"a.b"}`, []string{`/tool: "a.b": expected`}},
	{"inline", `{"project":"p-1","inline":{"name":"a/b","code":1,"source":null,"capability":{"write":true,"network":1},"language":"python"}}`,
		[]string{`/inline/name: "a/b"`, "/inline/code: is number", "/inline/source: is null", "/inline/capability/write: unknown member",
			"/inline/capability/network: is number", "/inline/language: unknown member"}},
	{"environments", `{"project":"p-1","tool":"t","tool_env":"","plan":{"execution_environment":"docker"}}`,
		[]string{`/tool_env: "": expected host or container`, `/plan/execution_environment: "docker": expected host or container`}},
	{"plan", `{"project":"p-1","tool":"t","plan":{"id":7,"read_only":"no","name":"x"}}`,
		[]string{"/plan/id: is number", "/plan/read_only: is string", "/plan/name: unknown member"}},
	{"plan id", `{"project":"p-1","tool":"t","plan":{"id":"` + strings.Repeat("é", 1025) + `"}}`, []string{"/plan/id: expected a text of at most 1024"}},
	{"NUL in the plan id", `{"project":"p-1","tool":"t","plan":{"id":"\u0000"}}`, []string{`/plan/id: "\u0000": expected`}},
	{"limits of nothing", `{"project":"p-1","tool":"t","limits":{"timeout_seconds":0,"max_output_bytes":0,"memory_bytes":0,"cpus":0,
		"cpu_seconds":0,"pids":0,"file_size_bytes":0,"open_files":0}}`,
		[]string{"/limits/timeout_seconds: 0: expected", "/limits/max_output_bytes: 0: expected", "/limits/memory_bytes: 0: expected",
			"/limits/cpus: 0: expected", "/limits/cpu_seconds: 0: expected", "/limits/pids: 0: expected",
			"/limits/file_size_bytes: 0: expected", "/limits/open_files: 0: expected"}},
	{"limits below nothing", `{"project":"p-1","tool":"t","limits":{"timeout_seconds":-1,"pids":-5}}`,
		[]string{"/limits/timeout_seconds: -1: expected", "/limits/pids: -5: expected a whole number from 1"}},
	{"limits in fractions", `{"project":"p-1","tool":"t","limits":{"pids":1.5,"memory_bytes":1e-1,"open_files":"64","cpus":true}}`,
		[]string{"/limits/pids: is number, expected a whole number", "/limits/memory_bytes: is number", "/limits/open_files: is string",
			"/limits/cpus: is boolean"}},
	{"limits above everything", `{"project":"p-1","tool":"t","limits":{"timeout_seconds":1e400,"pids":9007199254740992,"memory_bytes":1e999999999,
		"cpus":1000000000.0000000000000001,"open_files":99999999999999999999,"cpu_seconds":1e1000000000}}`,
		[]string{"/limits/timeout_seconds: ", "/limits/pids: ", "/limits/memory_bytes: ", "/limits/cpus: ", "/limits/open_files: ", "/limits/cpu_seconds: "}},
	{"limits close to nothing", `{"project":"p-1","tool":"t","limits":{"timeout_seconds":1e-400,"cpus":9.99999999999999999999999e-10}}`,
		[]string{"/limits/timeout_seconds: ", "/limits/cpus: "}},
	{"limits that are none", `{"project":"p-1","tool":"t","limits":{"timeout":1,"concurrency":1}}`,
		[]string{"/limits/timeout: unknown member", "/limits/concurrency: unknown member"}},
	{"outputs", `{"project":"p-1","tool":"t","outputs":["",1,null,"a\u0000b","` + strings.Repeat("p", 4097) + `"]}`,
		[]string{"/outputs/0: ", "/outputs/1: is number", "/outputs/2: is null", `/outputs/3: "a\u0000b": expected`, "/outputs/4: "}},
	{"many outputs", `{"project":"p-1","tool":"t","outputs":[` + strings.Repeat(`"a",`, 1000) + `"a"]}`, []string{"/outputs: expected a list of at most 1000"}},
	{"retry", `{"project":"p-1","tool":"t","retry":{"max_attempts":0,"backoff_seconds":-1,"attempts":3}}`,
		[]string{"/retry/max_attempts: 0: expected", "/retry/backoff_seconds: -1: expected", "/retry/attempts: unknown member"}},
	{"retry for ever", `{"project":"p-1","tool":"t","retry":{"max_attempts":1001}}`, []string{"/retry/max_attempts: 1001: expected a whole number from 1 to 1000"}},
	{"NUL in a path", `{"project":"p-1","tool":"t","input":{"path":"a\u0000b"}}`, []string{`/input/path: "a\u0000b": expected a path without NUL`}},
	{"NUL in paths", `{"project":"p-1","tool":"t","input":{"a":[{"in_file":["ok","\u0000"],"~/":{"x_path":"\u0000"}}],"_path":{"path":"\u0000"},"s":"\u0000"}}`,
		[]string{"/input/a/0/in_file/1: ", "/input/a/0/~0~1/x_path: ", "/input/_path/path: "}},
}

func TestSchemaAndCodeRefuseTheSame(t *testing.T) {
	schema, err := schemas.Compile(schemas.Request)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			q, err := event.DecodeData([]byte(c.data))
			var e *tool.Error
			if !errors.As(err, &e) || e.Code != tool.InvalidRequest || q != nil {
				t.Fatalf("decoded as %+v, error %v", q, err)
			}
			wantContains(t, e.Message, c.want...)
			if got := strings.Count(e.Message, "; ") + 1; got > len(c.want)+1 {
				t.Errorf("%d faults, expected %d: %s", got, len(c.want), e.Message)
			}
			if v, err := schemas.Value([]byte(c.data)); err == nil && schema.Validate(v) == nil {
				t.Error("the schema accepts it")
			}
			// The same, within an event.
			e = mustReject(t, withData(c.data))
			for _, want := range c.want {
				pointer, _, _ := strings.Cut(want, ":")
				if strings.HasPrefix(pointer, "/") {
					wantContains(t, e.Message, "/data"+strings.TrimSuffix(pointer, "/"))
				}
			}
			mustReject(t, inHeaders(c.data))
		})
	}
}

func TestAttributesRefused(t *testing.T) {
	const right = `"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","data":` + minimal
	with := func(old, replacement string) event.Message {
		if !strings.Contains(right, old) {
			t.Fatalf("%s is not in the event", old)
		}
		return inBody("{" + strings.Replace(right, old, replacement, 1) + "}")
	}
	more := func(members string) event.Message { return inBody("{" + right + "," + members + "}") }
	schema, err := schemas.Compile(schemas.RequestEvent)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		m      event.Message
		want   []string
		beyond bool
	}{
		{"specversion", with(`"1.0"`, `"0.3"`), []string{`/specversion: "0.3": expected 1.0`}, false},
		{"specversion as a number", with(`"1.0"`, `1.0`), []string{`/specversion: is a number, expected a text`}, false},
		{"type", with(`request.v1`, `request.v2`), []string{`/type: "dev.toolworker.request.v2": expected dev.toolworker.request.v1`}, false},
		{"type missing", with(`"type"`, `"kind"`), []string{`/type: missing, but required`}, false},
		{"type null", with(`"dev.toolworker.request.v1"`, `null`), []string{`/type: missing, but required`}, false},
		{"source missing", with(`"source"`, `"sauce"`), []string{`/source: missing, but required`}, false},
		{"source empty", with(`"/planner"`, `""`), []string{`/source: "": expected`}, false},
		{"source no URI", with(`"/planner"`, `"http://[::1"`), []string{`/source: "http://[::1": expected a URI reference`}, false},
		{"subject of another", more(`"subject":"u"`), []string{`/subject: "u": expected "t", the name of the tool`}, true},
		{"subject empty", more(`"subject":""`), []string{`/subject: "": expected`}, false},
		{"another project", with(`"p-1"`, `"p-2"`), []string{`/data/project: "p-2": expected "p-1", the last token of the subject`}, true},
		{"data missing", with(`"data":`+minimal, `"ext":1`), []string{`/data: missing, but required`}, false},
		{"data null", with(minimal, `null`), []string{`/data: missing, but required`}, false},
		{"both data", more(`"data_base64":"e30="`), []string{`/data_base64: both data and data_base64`}, false},
		{"no base64", with(`"data":`+minimal, `"data_base64":"e30"`), []string{`/data_base64: expected base64 with padding`}, false},
		{"base64 as an object", with(`"data":`+minimal, `"data_base64":{}`), []string{`/data_base64: expected base64`}, false},
		{"datacontenttype", more(`"datacontenttype":"text/json"`), []string{`/datacontenttype: "text/json": expected application/json`}, false},
		{"time", more(`"time":"yesterday"`), []string{`/time: "yesterday": expected a time of RFC 3339`}, false},
		{"time without a zone", more(`"time":"2026-05-01T12:00:00"`), []string{`/time: "2026-05-01T12:00:00": expected a time`}, false},
		{"time with a comma", more(`"time":"2026-05-01T12:00:00,5Z"`), []string{`/time: `}, false},
		{"30 February", more(`"time":"2026-02-30T12:00:00Z"`), []string{`/time: `}, false},
		{"a leap second at noon", more(`"time":"2016-12-31T12:00:60Z"`), []string{`/time: `}, false},
		{"expirytime as a number", more(`"expirytime":1777636800`), []string{`/expirytime: is a number, expected a text`}, false},
		{"expirytime", more(`"expirytime":"2026-05-01 12:00:00Z"`), []string{`/expirytime: `}, false},
		{"correlationid", more(`"correlationid":"` + strings.Repeat("c", 1025) + `"`), []string{`/correlationid: "ccc`, `expected at most 1024 bytes`}, false},
		{"control character", more(`"correlationid":"a\nb"`), []string{`/correlationid: "a\nb": expected`}, false},
		{"traceparent", more(`"traceparent":"00-abc"`), []string{`/traceparent: "00-abc": expected`}, false},
		{"traceparent of zeros", more(`"traceparent":"00-` + strings.Repeat("0", 32) + `-b7ad6b7169203331-01"`), []string{`/traceparent: `}, false},
		{"traceparent in upper case", more(`"traceparent":"` + strings.ToUpper(traceParent) + `"`), []string{`/traceparent: `}, false},
		{"traceparent of version ff", more(`"traceparent":"ff` + traceParent[2:] + `"`), []string{`/traceparent: `}, false},
		{"traceparent too long", more(`"traceparent":"` + traceParent + `-00"`), []string{`/traceparent: `}, false},
		{"tracestate", more(`"tracestate":"` + strings.Repeat("t", 8193) + `"`), []string{`/tracestate: `, `at most 8192 bytes`}, false},
		{"a name in another case", more(`"Time":"2026-05-01T12:00:00Z"`), []string{`/Time: no name of an attribute`}, false},
		{"a name with a dash", more(`"my-ext":1`), []string{`/my-ext: no name of an attribute`}, false},
		{"a name of nothing", more(`"":1`), []string{`/: no name of an attribute`}, false},
		{"an extension as an object", more(`"ext":{"a":1}`), []string{`/ext: is an object, expected a text, a number, true or false`}, false},
		{"an extension as a list", more(`"ext":[]`), []string{`/ext: is a list, expected`}, false},
		{"all at once", inBody(`{"specversion":"1.0","id":"r-1","type":"t","time":1,"data":{"project":"p-2","tool":"t u","limits":{"pids":0}}}`),
			[]string{"/data/limits/pids: 0", "/data/project: ", "/data/tool: ", "/source: missing", "/time: is a number", "/type: "}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := mustReject(t, c.m)
			wantContains(t, e.Message, c.want...)
			if got := strings.Count(e.Message, "; ") + 1; got > len(c.want) {
				t.Errorf("%d faults, expected %d: %s", got, len(c.want), e.Message)
			}
			// The schema of events agrees, but it does not know the subject
			// of the message, nor what two members say together.
			v, err := schemas.Value(c.m.Data)
			if valid := err == nil && schema.Validate(v) == nil; valid != c.beyond {
				t.Errorf("valid by the schema: %v, expected %v", valid, c.beyond)
			}
		})
	}
}

func TestLaterTraceContextIsAccepted(t *testing.T) {
	for _, later := range []string{"01" + traceParent[2:], "cc" + traceParent[2:] + "-what-the-future-brings"} {
		if q := mustDecode(t, inHeaders(minimal, "ce-traceparent", later)); q.TraceParent != later {
			t.Errorf("traceparent %q, sent %q", q.TraceParent, later)
		}
	}
}

// What can be read of a wrong request is in its result.
func TestRejectedRequestsKeepWhatWasReadable(t *testing.T) {
	q, err := event.DecodeRequest(inBody(`{"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1",
		"traceparent":"`+traceParent+`","correlationid":"c","expirytime":"soon","data":{"project":"p-2","tool":"t","plan":{"id":"plan-7"},"x":1}}`), prefix)
	if err == nil || q.ID != "r-1" || q.Project != "p-1" || q.Tool != "t" || q.Plan.ID != "plan-7" || q.CorrelationID != "c" ||
		q.TraceParent != traceParent || !q.ExpiryTime.IsZero() || q.Pool != "default" || q.Priority != tool.Normal {
		t.Errorf("error %v, request %+v", err, q)
	}
}
