package event_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// checkDecoded checks what holds for every message, whatever is in it.
func checkDecoded(t *testing.T, m event.Message) {
	q, err := event.DecodeRequest(m, prefix)
	var unreadable *event.Unreadable
	var reference *event.Reference
	var rejected *tool.Error
	switch {
	case err == nil:
		checkAccepted(t, q)
		return
	case errors.As(err, &unreadable):
		if (q != nil) != (unreadable.ID != "") {
			t.Fatalf("request %+v with %v", q, err)
		}
		if q == nil {
			return
		}
	case errors.As(err, &rejected):
		if rejected.Code != tool.InvalidRequest || len(rejected.Message) > 6000 || !utf8.ValidString(rejected.Message) || rejected.Message == "" {
			t.Fatalf("error %q", rejected)
		}
	case errors.As(err, &reference):
		if _, err := reference.Decode([]byte("x")); err == nil {
			t.Fatal("x is the data of a request")
		}
	default:
		t.Fatalf("error %T: %v", err, err)
	}
	// It can be answered.
	if q == nil || !tool.ValidName(q.ID) || q.Project != "p-1" || q.CorrelationID == "" {
		t.Fatalf("request %+v with %v", q, err)
	}
	r := &tool.Result{RequestID: q.ID, Project: q.Project, Tool: q.Name(), Error: tool.AsError(err)}
	if answer, err := event.EncodeResult(t.Context(), r, q, nil, prefix); err != nil {
		t.Fatal(err)
	} else if _, err := event.DecodeResult(answer); err != nil {
		t.Fatalf("%v in %s", err, answer.Data)
	}
}

// checkAccepted checks that a request says the same once it was written and
// read again.
func checkAccepted(t *testing.T, q *tool.Request) {
	if !json.Valid(q.Input) || q.Input[0] != '{' || !tool.ValidName(q.Name()) || (q.Tool == "") == (q.Inline == nil) {
		t.Fatalf("request %+v", q)
	}
	m, err := event.EncodeRequest(q, prefix)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	again, err := event.DecodeRequest(m, prefix)
	if err != nil {
		t.Fatalf("%s: %v", m.Data, err)
	}
	compact := func(q *tool.Request) string {
		b, err := json.Marshal(q)
		if err != nil {
			t.Skip(err) // a year that JSON of Go does not have
		}
		return string(b)
	}
	q.Time, q.ExpiryTime, again.Time, again.ExpiryTime = q.Time.UTC(), q.ExpiryTime.UTC(), again.Time.UTC(), again.ExpiryTime.UTC()
	if first, second := compact(q), compact(again); first != second {
		t.Fatalf("sent %s\nread %s", first, second)
	}
}

func FuzzDecodeStructured(f *testing.F) {
	for _, c := range bad {
		f.Add(withData(c.data).Data)
	}
	f.Add(withData(minimal).Data)
	f.Add([]byte(`{` + fullAttributes + `,"data":` + fullData + `}`))
	f.Add([]byte(`{"specversion":"1.0","id":"r-1","source":"/p","type":"dev.toolworker.request.v1","data_base64":"e30="}`))
	f.Add([]byte(`{"specversion":"1.0","id":"r-1","source":"/p","type":"dev.toolworker.request.v1","dataref":"nats-obj://tool_inputs_p-1/r-1?sha256=` + sumOf("") + `"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		checkDecoded(t, event.Message{Subject: "tools.request.default.normal.p-1", Data: body})
	})
}

func FuzzDecodeBinary(f *testing.F) {
	f.Add("ce-subject", "t", "1.0", "r-1", []byte(minimal))
	f.Add("CE-DataRef", "nats-obj://tool_inputs_p-1/r-1?sha256="+sumOf(""), "1.0", "%72-1", []byte{})
	f.Add("ce-expirytime", "2016-12-31t23:59:60.5-00:30", "%31.0", `"r-1"`, []byte(fullData))
	f.Add("ce-traceparent", traceParent, "1.0", "r-1", []byte(`{"a":NaN}`))
	f.Add("content-type", "text/plain", "0.3", "r-1", []byte(`x`))
	f.Fuzz(func(t *testing.T, name, value, version, id string, body []byte) {
		m := inHeaders(string(body), "ce-specversion", version, "ce-id", id)
		m.Header[name] = []string{value}
		checkDecoded(t, m)
	})
}

// The schema and the code accept the same data.
func FuzzDecodeData(f *testing.F) {
	schema, err := schemas.Compile(schemas.Request)
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range bad {
		f.Add([]byte(c.data))
	}
	f.Add([]byte(fullData))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := event.DecodeData(data)
		v, strict := schemas.Value(data)
		switch {
		case strict != nil && err != nil:
		case strict != nil && strings.Contains(strict.Error(), "exponent"): // of a number in the input
		case strict != nil:
			t.Fatalf("accepted, but no strict JSON: %v", strict)
		case schema.Validate(v) != nil && err == nil:
			t.Fatalf("accepted, but the schema says %v", schemas.Faults(schema.Validate(v)))
		case schema.Validate(v) == nil && err != nil && !strings.Contains(err.Error(), "levels"):
			t.Fatalf("the schema accepts it, but the code says %v", err)
		}
	})
}

func FuzzEncodeResult(f *testing.F) {
	f.Add("text", []byte(`{"a":1}`), "changed/path", "message", int64(1), uint8(0))
	f.Add("\xff\x00é", []byte(`null`), "a\xffb", strings.Repeat("m", 100_000), int64(-1), uint8(255))
	f.Add(strings.Repeat("\x01", 100_000), []byte(`[1, 2]`), "", "", int64(1<<60), uint8(7))
	f.Fuzz(func(t *testing.T, text string, document []byte, path, message string, duration int64, choice uint8) {
		r := &tool.Result{
			RequestID: "r-1", Project: "p-1", Tool: "t", Output: tool.Text(text), Stdout: tool.Text(text), Value: tool.Document(document),
			Duration: time.Duration(max(duration, 0)), Worker: path, PlanID: path, Truncated: choice&1 != 0, ChangesTruncated: choice&2 != 0,
			Changes:  []tool.Change{{Path: path, Change: tool.Created}},
			Files:    []tool.File{{HostPath: path, ContainerPath: text, SHA256: sumOf(text)}},
			Metadata: tool.Metadata{Process: &tool.ProcessMetadata{ExitCode: int(choice), Signal: message}},
		}
		if choice&4 != 0 {
			r.Error = tool.Errorf(tool.ExitStatus, "%s", message)
		}
		_, invalid := schemas.Value(document)
		store := memoryStore{}
		m, err := event.EncodeResult(t.Context(), r, full(), store, prefix)
		if err != nil {
			if invalid == nil {
				t.Fatal(err)
			}
			return
		}
		doc, err := event.DecodeResult(m)
		if err != nil && strings.Contains(err.Error(), "exponent") {
			t.Skip(err) // a document with a number that no reader can compute with
		}
		if err != nil {
			t.Fatalf("%v in %.1000s", err, m.Data)
		}
		if len(m.Data) > event.MaxResult || doc.Success != (r.Error == nil) {
			t.Fatalf("%d bytes: %.1000s", len(m.Data), m.Data)
		}
		if _, moved := doc.Refs["stdout"]; !moved && *doc.Stdout != strings.ToValidUTF8(text, "\uFFFD") && len(*doc.Stdout) < len(text) {
			t.Fatalf("stdout %q, sent %q", *doc.Stdout, text)
		}
	})
}
