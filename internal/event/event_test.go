package event_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const prefix = "tools"

// inBody is a message in structured mode.
func inBody(body string) event.Message {
	return event.Message{
		Subject: "tools.request.default.normal.p-1",
		Header:  map[string][]string{"Content-Type": {"application/cloudevents+json"}},
		Data:    []byte(body),
	}
}

// withData is an event with the required attributes and this data.
func withData(data string) event.Message {
	return inBody(`{"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","data":` + data + `}`)
}

// inHeaders is a message in binary mode with the required attributes; more
// are name, value pairs.
func inHeaders(data string, more ...string) event.Message {
	m := event.Message{
		Subject: "tools.request.default.normal.p-1",
		Header: map[string][]string{
			"ce-specversion": {"1.0"}, "ce-id": {"r-1"}, "ce-source": {"/planner"}, "ce-type": {"dev.toolworker.request.v1"},
		},
		Data: []byte(data),
	}
	for i := 0; i < len(more); i += 2 {
		m.Header[more[i]] = []string{more[i+1]}
	}
	return m
}

const minimal = `{"project":"p-1","tool":"t"}`

// mustDecode decodes a request that is right.
func mustDecode(t *testing.T, m event.Message) *tool.Request {
	t.Helper()
	q, err := event.DecodeRequest(m, prefix)
	if err != nil {
		t.Fatalf("decode %.300s: %v", m.Data, err)
	}
	return q
}

// mustReject decodes a request that is wrong and returns its error; the
// request that comes with it can be answered.
func mustReject(t *testing.T, m event.Message) *tool.Error {
	t.Helper()
	q, err := event.DecodeRequest(m, prefix)
	var e *tool.Error
	if !errors.As(err, &e) || e.Code != tool.InvalidRequest {
		t.Fatalf("decode %.300s: error %v, expected %s", m.Data, err, tool.InvalidRequest)
	}
	if q == nil || q.ID == "" || q.Project == "" || q.CorrelationID == "" {
		t.Fatalf("decode %.300s: request %+v, expected one that can be answered", m.Data, q)
	}
	return e
}

// mustNotRead decodes a message that is no event.
func mustNotRead(t *testing.T, m event.Message) *event.Unreadable {
	t.Helper()
	q, err := event.DecodeRequest(m, prefix)
	var u *event.Unreadable
	if !errors.As(err, &u) {
		t.Fatalf("decode %.300s: error %v, expected *Unreadable", m.Data, err)
	}
	if (q != nil) != (u.ID != "") {
		t.Errorf("decode %.300s: request %+v with id %q", m.Data, q, u.ID)
	}
	if q != nil && q.ID != u.ID {
		t.Errorf("request has id %q, the error %q", q.ID, u.ID)
	}
	if len(u.Reason) > 500 {
		t.Errorf("reason of %d bytes", len(u.Reason))
	}
	return u
}

func wantContains(t *testing.T, s string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(s, part) {
			t.Errorf("%q does not contain %q", s, part)
		}
	}
}
