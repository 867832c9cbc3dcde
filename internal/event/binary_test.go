package event_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
)

func upper(s string) string { return strings.ToUpper(s) }

// title is how HTTP libraries write header names.
func title(s string) string {
	parts := strings.Split(s, "-")
	for i, p := range parts {
		parts[i] = strings.ToUpper(p[:1]) + p[1:]
	}
	return strings.Join(parts, "-")
}

func withHeader(m event.Message, name string, values ...string) event.Message {
	m.Header = maps.Clone(m.Header)
	m.Header[name] = values
	return m
}

func TestHeaderValuesAreDecodedOnce(t *testing.T) {
	for header, want := range map[string]string{
		"plain":                           "plain",
		"Euro%20%E2%82%AC%20%F0%9F%98%80": "Euro € 😀",
		"%e2%82%ac":                       "€",
		"100%25":                          "100%",
		"%2525":                           "%25",
		"%41bc":                           "Abc",
		`"Euro € 😀"`:                      "Euro € 😀",
		`"a \"quoted\" \\ text%20"`:       `a "quoted" \ text `,
		`a"b`:                             `a"b`,
		" \tspace around ":                "space around",
		"a+b":                             "a+b",
		"Euro € unencoded":                "Euro € unencoded",
	} {
		if q := mustDecode(t, inHeaders(minimal, "ce-correlationid", header)); q.CorrelationID != want {
			t.Errorf("header %q is %q, expected %q", header, q.CorrelationID, want)
		}
	}
}

func TestHeaderValuesRefused(t *testing.T) {
	for _, header := range []string{"%", "100%", "%2", "%zz", "%C0%A0", "%ff", "\xff", "%00", "a%0Ab", `""`, "%ED%A0%80"} {
		e := mustReject(t, inHeaders(minimal, "ce-correlationid", header))
		wantContains(t, e.Message, "/correlationid: ", "expected")
	}
}

func TestHeadersGivenMoreThanOnce(t *testing.T) {
	if q := mustDecode(t, withHeader(inHeaders(minimal), "ce-subject", "t", "t")); q.Tool != "t" {
		t.Errorf("the same value twice: %+v", q)
	}
	e := mustReject(t, withHeader(inHeaders(minimal), "ce-subject", "t", "u"))
	wantContains(t, e.Message, "/subject: given more than once")
	e = mustReject(t, withHeader(inHeaders(minimal, "ce-type", "dev.toolworker.request.v1"), "CE-TYPE", "dev.toolworker.request.v1"))
	wantContains(t, e.Message, "/type: given more than once")
	u := mustNotRead(t, withHeader(inHeaders(minimal), "CE-ID", "r-2"))
	wantContains(t, u.Reason, "id: given more than once")
}

func TestMediaTypeOfTheBody(t *testing.T) {
	for _, name := range []string{"Content-Type", "content-type", "ce-datacontenttype", "CE-DataContentType"} {
		mustDecode(t, inHeaders(minimal, name, "Application/JSON; charset=UTF-8"))
		e := mustReject(t, inHeaders(minimal, name, "text/plain"))
		wantContains(t, e.Message, `/datacontenttype: "text/plain": expected application/json`)
	}
	// The attribute counts, where a library sets the transport's own header.
	mustDecode(t, inHeaders(minimal, "ce-datacontenttype", "application/json", "Content-Type", "application/octet-stream"))
}

func TestOtherFormats(t *testing.T) {
	for _, format := range []string{"application/cloudevents-batch+json", "application/cloudevents+xml", "application/cloudevents+avro"} {
		m := withData(minimal)
		m.Header = map[string][]string{"Content-Type": {format}}
		u := mustNotRead(t, m)
		wantContains(t, u.Reason, format, "expected application/cloudevents+json")
	}
}
