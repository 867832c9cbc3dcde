package event_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// fullResult has every member that a result in place can have.
func fullResult() *tool.Result {
	return &tool.Result{
		RequestID: "r-1", Project: "p-1", PlanID: "plan-7", Tool: "file_read",
		Error:  &tool.Error{Code: tool.TimedOut, Message: "Container execution timed out after 120s"},
		Output: tool.Document([]byte(`{"text": "..."}`)), Value: tool.Document([]byte(`null`)),
		Stdout: tool.Text("é\n\x00"), Stderr: tool.Text(""), Truncated: true,
		Duration: 1500*time.Millisecond + 250*time.Microsecond, Attempt: 1, Worker: "host a/1",
		Files: []tool.File{{ContainerPath: "/workspace/build/output.txt", HostPath: "/srv/projects/p-1/build/output.txt", SizeBytes: 42,
			SHA256: sumOf("")}},
		Changes:          []tool.Change{{Path: "src/main.py", Change: tool.Modified}, {Path: "bad\xffname", Change: tool.Created}},
		ChangesTruncated: true,
		Metadata: tool.Metadata{
			Environment: &tool.Resolution{Resolved: tool.Container, DecidedBy: tool.DecidedByPlan},
			Container: &tool.ContainerMetadata{ContainerID: "abc123", Image: "ghcr.io/org/devimage:latest", WorkspaceFolder: "/workspace",
				ExecTimeMS: 1500.5, ExitCode: 137, TimedOut: true, Mode: "agent"},
			Process:  &tool.ProcessMetadata{ExitCode: 137, Signal: "SIGKILL", TimedOut: true},
			Sandbox:  &tool.SandboxMetadata{Isolation: tool.IsolationFull, Mechanisms: []string{"user", "mount"}},
			Limits:   &tool.LimitsInForce{Limits: tool.Limits{TimeoutSeconds: 120, PIDs: 128}, Clamped: []string{"pids"}},
			Usage:    &tool.Usage{CPUMS: 12, MaxRSSBytes: 9437184},
			QueuedMS: 3.1,
		},
	}
}

// encode writes a result and validates it: by the SDK of CloudEvents, by the
// schema, and by reading it back.
func encode(t *testing.T, r *tool.Result, q *tool.Request, store event.PayloadStore) (event.Message, *event.ResultDoc) {
	t.Helper()
	m, err := event.EncodeResult(t.Context(), r, q, store, prefix)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Data) > event.MaxResult {
		t.Fatalf("result of %d bytes", len(m.Data))
	}
	validated(t, m)
	mustSatisfy(t, schemas.ResultEvent, m.Data)
	doc, err := event.DecodeResult(m)
	if err != nil {
		t.Fatalf("%v in %.500s", err, m.Data)
	}
	return m, doc
}

func TestEncodeResult(t *testing.T) {
	q := full()
	m, doc := encode(t, fullResult(), q, nil)
	run := m.Header["Tool-Execution"]
	if len(run) != 1 || !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(run[0]) {
		t.Errorf("Tool-Execution %q", run)
	}
	delete(m.Header, "Tool-Execution")
	wantHeader := map[string][]string{"Content-Type": {"application/cloudevents+json"}, "Nats-Msg-Id": {"p-1/r-1/result"}}
	if diff := cmp.Diff(wantHeader, m.Header); diff != "" || m.Subject != "tools.result.p-1.r-1" {
		t.Errorf("subject %s, headers (-want +got):\n%s", m.Subject, diff)
	}
	// The members and their order are those of PROTOCOL.md section 5.
	want := `{"specversion":"1.0","id":"r-1.result","source":"/toolworker/host%20a%2F1","type":"dev.toolworker.result.v1",` +
		`"subject":"file_read","time":"TIME","datacontenttype":"application/json","traceparent":"` + traceParent + `","tracestate":"a=b",` +
		`"correlationid":"c 1","causationid":"r-1","data":{"request_id":"r-1","project":"p-1","plan_id":"plan-7","tool":"file_read",` +
		`"status":"failed","success":false,"output":{"text": "..."},"value":null,"stdout":"é\n\u0000","stderr":"","truncated":true,` +
		`"error":{"code":"timeout","message":"Container execution timed out after 120s"},"duration_ms":1500.25,"attempt":1,"worker":"host a/1",` +
		`"files":[{"container_path":"/workspace/build/output.txt","host_path":"/srv/projects/p-1/build/output.txt","size_bytes":42,"sha256":"` + sumOf("") + `"}],` +
		`"changes":[{"path":"src/main.py","change":"modified"},{"path":"bad` + "\uFFFD" + `name","change":"created"}],"changes_truncated":true,` +
		`"metadata":{"environment":{"resolved":"container","decided_by":"plan"},` +
		`"container":{"container_id":"abc123","image":"ghcr.io/org/devimage:latest","workspace_folder":"/workspace","exec_time_ms":1500.5,"exit_code":137,"timed_out":true,"mode":"agent"},` +
		`"process":{"exit_code":137,"signal":"SIGKILL","timed_out":true},"sandbox":{"isolation":"full","mechanisms":["user","mount"],"missing":[]},` +
		`"limits":{"timeout_seconds":120,"pids":128,"clamped":["pids"]},"usage":{"cpu_ms":12,"max_rss_bytes":9437184},"queued_ms":3.1}}}`
	got := regexp.MustCompile(`"time":"[^"]*Z"`).ReplaceAllString(string(m.Data), `"time":"TIME"`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	if age := time.Since(doc.Event.Time); age < 0 || age > time.Minute {
		t.Errorf("time %v", doc.Event.Time)
	}
}

func TestDecodeResult(t *testing.T) {
	m, doc := encode(t, fullResult(), full(), nil)
	stdout, stderr := "é\n\x00", ""
	r := fullResult()
	r.Changes[1].Path = "bad\uFFFDname"
	r.Metadata.Sandbox.Missing = []string{}
	want := &event.ResultDoc{
		Event: event.EventInfo{ID: "r-1.result", Source: "/toolworker/host%20a%2F1", Type: event.TypeResult, Subject: "file_read", Time: doc.Event.Time,
			CorrelationID: "c 1", CausationID: "r-1", TraceParent: traceParent, TraceState: "a=b"},
		Raw:       doc.Raw,
		RequestID: "r-1", Project: "p-1", PlanID: "plan-7", Tool: "file_read", Status: tool.StatusFailed,
		Output: json.RawMessage(`{"text": "..."}`), Value: json.RawMessage(`null`), Stdout: &stdout, Stderr: &stderr, Truncated: true, Error: r.Error,
		DurationMS: 1500.25, Attempt: 1, Worker: "host a/1", Files: r.Files, Changes: r.Changes, ChangesTruncated: true, Metadata: r.Metadata,
	}
	if diff := cmp.Diff(want, doc, sameTime); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if !json.Valid(doc.Raw) || !strings.Contains(string(m.Data), string(doc.Raw)) {
		t.Errorf("raw %s", doc.Raw)
	}
}

func TestSuccessHasNoError(t *testing.T) {
	q := mustDecode(t, withData(minimal))
	m, doc := encode(t, &tool.Result{RequestID: "r-1", Project: "p-1", Output: tool.Text("")}, q, nil)
	if !doc.Success || doc.Status != tool.StatusSucceeded || strings.Contains(string(m.Data), `"error"`) {
		t.Errorf("result %s", m.Data)
	}
	if string(doc.Output) != `""` || doc.Stdout != nil || doc.Stderr != nil || doc.Value != nil || doc.Files == nil || doc.Changes == nil ||
		doc.Tool != "t" || doc.Event.CorrelationID != "r-1" || doc.Event.TraceParent != "" {
		t.Errorf("result %s", m.Data)
	}
	for _, absent := range []string{"plan_id", "value", "stdout", "stderr", "refs", "changes_truncated", "traceparent", "tracestate"} {
		if strings.Contains(string(m.Data), `"`+absent+`"`) {
			t.Errorf("%s is in %s", absent, m.Data)
		}
	}
}

// A request that could not be read so far has a result as well.
func TestResultOfAnUnreadableRequest(t *testing.T) {
	q, err := event.DecodeRequest(inBody(`{"specversion":"1.0","id":"r-1","data":`), prefix)
	var u *event.Unreadable
	if !errors.As(err, &u) || q == nil {
		t.Fatalf("request %v, error %v", q, err)
	}
	m, doc := encode(t, &tool.Result{RequestID: q.ID, Project: q.Project, Tool: q.Name(), Error: u.Rejection()}, q, nil)
	if doc.Status != tool.StatusRejected || doc.Tool != "" || doc.Event.Subject != "" || strings.Contains(string(m.Data), `"output"`) ||
		m.Subject != "tools.result.p-1.r-1" {
		t.Errorf("result %s", m.Data)
	}
}

func TestErrorMessagesAreBounded(t *testing.T) {
	r := fullResult()
	r.Error = tool.Errorf(tool.ExitStatus, "Execution failed (exit code 1): %s", strings.Repeat("\xff\x00é", 1<<20))
	_, doc := encode(t, r, full(), nil)
	if n := len(doc.Error.Message); n > 100<<10 || n < 30<<10 || !strings.HasSuffix(doc.Error.Message, "...") {
		t.Errorf("message of %d bytes", n)
	}
}

func TestEncodeResultRefusesBrokenDocuments(t *testing.T) {
	for _, document := range []string{``, `{`, `{"a":1,"a":2}`, `1 2`, "\"\xff\"", `NaN`} {
		r := fullResult()
		r.Output = tool.Document([]byte(document))
		if m, err := event.EncodeResult(t.Context(), r, full(), nil, prefix); err == nil || !strings.Contains(err.Error(), "output") {
			t.Errorf("%q: error %v, message %s", document, err, m.Data)
		}
	}
}

func TestDecodeResultRefuses(t *testing.T) {
	m, _ := encode(t, fullResult(), full(), nil)
	replace := func(old, replacement string) event.Message {
		if !strings.Contains(string(m.Data), old) {
			t.Fatalf("%s is not in %s", old, m.Data)
		}
		return event.Message{Header: m.Header, Data: []byte(strings.Replace(string(m.Data), old, replacement, 1))}
	}
	for name, c := range map[string]struct {
		m    event.Message
		want string
	}{
		"noise":                {event.Message{Data: []byte("noise")}, "no strict JSON"},
		"a request":            {withData(minimal), `type "dev.toolworker.request.v1": expected dev.toolworker.result.v1`},
		"another version":      {replace(event.TypeResult, "dev.toolworker.result.v2"), "expected dev.toolworker.result.v1"},
		"a status unknown":     {replace(`"failed"`, `"lost"`), `/data/status: "lost"`},
		"a success that fails": {replace(`"success":false`, `"success":true`), "/data/success: true: expected false"},
		"no error":             {replace(`"error":`, `"mistake":`), "/data/error: missing"},
		"an error and success": {replace(`"status":"failed","success":false`, `"status":"succeeded","success":true`), "/data/error: expected no error in a success"},
		"output of a rejected": {replace(`"status":"failed"`, `"status":"rejected"`), "/data/output: expected no output where nothing ran"},
		"a duplicate":          {replace(`"attempt":1`, `"attempt":1,"attempt":2`), "duplicate"},
		"no metadata":          {replace(`"metadata"`, `"meta"`), "/data/metadata: missing"},
		"types":                {replace(`"attempt":1`, `"attempt":"1"`), "/data/attempt: is string, expected integer"},
		"an unknown change":    {replace(`"modified"`, `"moved"`), `/data/changes/0/change: "moved"`},
		"no data":              {inBody(`{"specversion":"1.0","id":"r","source":"/s","type":"dev.toolworker.result.v1"}`), "no data"},
		"another format":       {event.Message{Header: map[string][]string{"content-type": {"application/cloudevents+xml"}}}, "application/cloudevents+xml"},
	} {
		t.Run(name, func(t *testing.T) {
			if doc, err := event.DecodeResult(c.m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q; result %+v", err, c.want, doc)
			}
		})
	}
	// What later workers add is not refused.
	doc, err := event.DecodeResult(replace(`"attempt":1`, `"attempt":1,"added":{"later":[]}`))
	if err != nil || !strings.Contains(string(doc.Raw), `"added"`) {
		t.Errorf("error %v, result %+v", err, doc)
	}
	if _, err := event.DecodeResult(replace(`"timeout"`, `"a_later_code"`)); err != nil {
		t.Error(err)
	}
}

// Every code is in the schema, which lists no other.
func TestCodesAreThoseOfTheSchema(t *testing.T) {
	schema, err := schemas.Compile("common.schema.json#/$defs/anyCode")
	if err != nil {
		t.Fatal(err)
	}
	var listed []tool.Code
	for _, c := range schema.Examples {
		listed = append(listed, tool.Code(c.(string)))
	}
	all := []tool.Code{tool.InvalidRequest, tool.UnknownTool, tool.UnknownProject, tool.Forbidden, tool.UnsupportedSource, tool.InvalidInput, tool.PathEscape,
		tool.ReadOnly, tool.EnvironmentUnavailable, tool.TimedOut, tool.ExitStatus, tool.StartFailed, tool.OutOfMemory, tool.TooManyProcesses,
		tool.LimitExceeded, tool.SandboxViolation, tool.InvalidOutput, tool.SyncFailed, tool.Cancelled, tool.Expired, tool.WorkerLost, tool.Internal}
	if diff := cmp.Diff(all, listed); diff != "" {
		t.Errorf("codes (-code +schema):\n%s", diff)
	}
	for _, code := range all {
		r := &tool.Result{RequestID: "r-1", Project: "p-1", Error: &tool.Error{Code: code, Message: "m"}}
		if _, doc := encode(t, r, full(), nil); doc.Error.Code != code || doc.Status != code.Status() {
			t.Errorf("result %s", doc.Raw)
		}
	}
}
