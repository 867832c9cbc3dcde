package event_test

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
)

func TestNoEvent(t *testing.T) {
	const id = `"id":"r-1"`
	for _, c := range []struct {
		name   string
		m      event.Message
		id     string
		reason string
	}{
		{"empty", inBody(``), "", "no JSON: it ends too early"},
		{"a text", inBody(`hello`), "", `no JSON: 'h' begins no value, at byte 0`},
		{"a list", inBody(`[{` + id + `}]`), "", "no CloudEvent: expected a JSON object, it is a list"},
		{"null", inBody(`null`), "", "it is null"},
		{"an object", inBody(`{"hello":1}`), "", "no CloudEvent"},
		{"no specversion", inBody(`{` + id + `,"type":"x"}`), "r-1", "no CloudEvent: specversion is missing"},
		{"specversion null", inBody(`{` + id + `,"specversion":null}`), "r-1", "no CloudEvent: specversion is missing"},
		{"no id", inBody(`{"specversion":"1.0"}`), "", "no CloudEvent: id is missing"},
		{"an id of two tokens", inBody(`{"specversion":"1.0","id":"a.b"}`), "", `id "a.b": expected 1 to 128 characters`},
		{"a wildcard as an id", inBody(`{"specversion":"1.0","id":"*"}`), "", `id "*": expected`},
		{"an id as a number", inBody(`{"specversion":"1.0","id":7}`), "", "id: is a number, expected a text"},
		{"cut after the id", inBody(`{"specversion":"1.0",` + id + `,"data":{"project":`), "r-1", "no JSON: it ends too early"},
		{"cut before the id", inBody(`{"specversion":"1.0"`), "", "no JSON"},
		{"something after it", inBody(`{"specversion":"1.0",` + id + `} {}`), "r-1", "something follows the document"},
		{"single quotes", inBody(`{'id':'r-1'}`), "", "no JSON"},
		{"a trailing comma", inBody(`{` + id + `,}`), "r-1", "no JSON: expected the name of a member"},
		{"a comment", inBody(`{` + id + `/* */}`), "r-1", "no JSON"},
		{"a leading zero", inBody(`{` + id + `,"a":01}`), "r-1", "no JSON: invalid number"},
		{"a control character", inBody("{" + id + ",\"a\":\"\n\"}"), "r-1", "control character in a text"},
		{"an escape that is none", inBody(`{` + id + `,"a":"\x41"}`), "r-1", "invalid escape"},
		{"UTF-16", inBody("\xff\xfe{\x00}\x00"), "", "no JSON"},
		{"binary without JSON", inHeaders(`hello`), "r-1", "the data is no JSON"},
		{"binary without an id", withHeader(inHeaders(minimal), "ce-id"), "", "no CloudEvent: id is missing"},
		{"binary with a bad id", withHeader(inHeaders(minimal), "ce-id", "a%2eb"), "", `id "a.b": expected`},
		{"base64 of no JSON", inBody(`{"specversion":"1.0",` + id + `,"data_base64":"` + base64.StdEncoding.EncodeToString([]byte("hi")) + `"}`), "r-1",
			"the data is no JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := mustNotRead(t, c.m)
			if u.ID != c.id {
				t.Errorf("id %q, expected %q", u.ID, c.id)
			}
			wantContains(t, u.Reason, c.reason)
			if rejection := u.Rejection(); rejection.Code != "invalid_request" || rejection.Message != u.Reason {
				t.Errorf("rejection %v", rejection)
			}
		})
	}
}

func TestSubjectsOfNoLane(t *testing.T) {
	for _, subject := range []string{
		"", "tools.request", "tools.request.default.normal", "tools.request.default.normal.p.q", "tools.result.p.r",
		"other.request.default.normal.p", "tools.request.default.urgent.p", "tools.request.de fault.normal.p", "tools.request.default.normal.",
		"tools.request..normal.p", "tools.request.default.normal." + strings.Repeat("p", 1000),
	} {
		m := withData(minimal)
		m.Subject = subject
		u := mustNotRead(t, m)
		wantContains(t, u.Reason, "subject", "expected")
	}
}

// A megabyte of noise is one clear error.
func TestNoise(t *testing.T) {
	random := make([]byte, 1<<20)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(r.Uint32())
	}
	for name, noise := range map[string][]byte{
		"random":       random,
		"zeros":        make([]byte, 1<<20),
		"quotes":       bytes.Repeat([]byte(`"`), 1<<20),
		"backslashes":  append([]byte(`"`), bytes.Repeat([]byte(`\`), 1<<20)...),
		"open objects": bytes.Repeat([]byte(`{"a":`), 1<<18),
		"open lists":   bytes.Repeat([]byte(`[`), 1<<20),
		"commas":       append([]byte(`[`), bytes.Repeat([]byte(`,`), 1<<20)...),
		"digits":       bytes.Repeat([]byte(`7`), 1<<20),
		"one text":     []byte(`"` + strings.Repeat("x", 1<<20) + `"`),
		"one name":     []byte(`{"` + strings.Repeat("x", 1<<20) + `":1`),
	} {
		t.Run(name, func(t *testing.T) {
			u := mustNotRead(t, inBody(string(noise)))
			if u.ID != "" || len(u.Error()) > 300 || strings.ContainsAny(u.Reason, "\n\x00") {
				t.Errorf("id %q, error of %d bytes: %.300q", u.ID, len(u.Error()), u.Error())
			}
			if _, err := event.DecodeRequest(inHeaders(string(noise)), prefix); err == nil || len(err.Error()) > 300 {
				t.Errorf("as data: %.400v", err)
			}
		})
	}
}
