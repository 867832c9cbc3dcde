package event

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/toolworker/toolworker/internal/tool"
)

// Types of events.
const (
	TypeRequest  = "dev.toolworker.request.v1"
	TypeResult   = "dev.toolworker.result.v1"
	TypeStarted  = "dev.toolworker.started.v1"
	TypeOutput   = "dev.toolworker.output.v1"
	TypeRetrying = "dev.toolworker.retrying.v1"
)

// SpecVersion is the version of CloudEvents that is spoken.
const SpecVersion = "1.0"

// Bounds of attributes that every event about a request repeats, in bytes.
const (
	maxCorrelation = 1024
	maxTraceState  = 8192
)

// attribute is one that has a meaning here; others are extensions, read over.
// Those up to eventType are required in every event.
type attribute int

const (
	specVersion attribute = iota
	id
	source
	eventType
	subject
	eventTime
	dataContentType
	traceParent
	traceState
	correlationID
	causationID
	expiryTime
	dataRef
	attributeCount
	noAttribute attribute = -1
)

var attributeNames = [attributeCount]string{
	"specversion", "id", "source", "type", "subject", "time", "datacontenttype",
	"traceparent", "tracestate", "correlationid", "causationid", "expirytime", "dataref",
}

func attributeNamed(name []byte) attribute {
	for a, n := range attributeNames {
		if string(name) == n {
			return attribute(a)
		}
	}
	return noAttribute
}

// attributes are the attributes of one event; unset ones are "".
type attributes struct {
	value [attributeCount]string
	set   [attributeCount]bool
	// bad ones were found at fault already.
	bad [attributeCount]bool
}

func (a *attributes) put(at attribute, value string) { a.value[at], a.set[at] = value, true }

// checkEvent adds what is wrong with the attributes that all events have.
func (a *attributes) checkEvent(wantType string, f *faults) {
	for at := range attributeCount {
		v := a.value[at]
		switch {
		case a.bad[at]:
		case !a.set[at]:
			if at <= eventType {
				f.attribute(at, "missing, but required")
			}
		case !validString(v):
			f.attribute(at, "%q: expected a text that is not empty and has no control characters", cut(v, maxShown))
			a.bad[at] = true
		default:
			if expected := unexpected(at, v, wantType); expected != "" {
				f.attribute(at, "%q: expected %s", cut(v, maxShown), expected)
			}
		}
	}
}

// unexpected says what the value of an attribute should have been; "" when it
// is right.
func unexpected(at attribute, v, wantType string) string {
	switch at {
	case specVersion:
		return unless(v == SpecVersion, SpecVersion)
	case eventType:
		return unless(v == wantType, wantType)
	case source:
		_, err := url.Parse(v)
		return unless(err == nil, "a URI reference")
	case dataContentType:
		return unless(isJSON(v), "application/json")
	case traceParent:
		return unless(validTraceParent(v), "version, trace id, parent id and flags of W3C Trace Context")
	case traceState:
		return unless(len(v) <= maxTraceState, "at most 8192 bytes")
	case correlationID:
		return unless(len(v) <= maxCorrelation, "at most 1024 bytes")
	case eventTime, expiryTime:
		_, err := parseTime(v)
		return unless(err == nil, "a time of RFC 3339")
	}
	return ""
}

func unless(right bool, expected string) string {
	if right {
		return ""
	}
	return expected
}

// envelope is what a request keeps of its attributes. Those that are wrong
// are left out.
func (a *attributes) envelope() tool.Envelope {
	e := tool.Envelope{
		ID:            a.value[id],
		Source:        a.value[source],
		CorrelationID: a.value[id],
		Time:          a.time(eventTime),
		ExpiryTime:    a.time(expiryTime),
	}
	if v := a.value[correlationID]; validString(v) && len(v) <= maxCorrelation {
		e.CorrelationID = v
	}
	if v := a.value[traceParent]; validTraceParent(v) {
		e.TraceParent = v
	}
	if v := a.value[traceState]; validString(v) && len(v) <= maxTraceState {
		e.TraceState = v
	}
	return e
}

// time is an attribute as a time; zero when it is none.
func (a *attributes) time(at attribute) time.Time {
	t, err := parseTime(a.value[at])
	switch {
	case !a.set[at] || err != nil:
		return time.Time{}
	case t.IsZero():
		return t.Add(1) // the zero time stands for none
	}
	return t
}

// validString reports whether s may be the value of an attribute: CloudEvents
// forbids the empty string here, and control characters everywhere.
func validString(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < 0x20 || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r <= 0x9f || r&0xfffe == 0xfffe || r >= 0xfdd0 && r <= 0xfdef {
			return false
		}
		i += size
	}
	return true
}

// isJSON reports whether a media type is application/json, whatever its
// parameters.
func isJSON(mediaType string) bool {
	t, _, _ := strings.Cut(mediaType, ";")
	return strings.EqualFold(strings.TrimSpace(t), "application/json")
}

// validTraceParent reports whether s is a traceparent of W3C Trace Context,
// of the version known today or of a later one.
func validTraceParent(s string) bool {
	if len(s) < 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return false
	}
	version, trace, parent, flags := s[:2], s[3:35], s[36:52], s[53:55]
	for _, part := range [...]string{version, trace, parent, flags} {
		for i := range len(part) {
			if c := part[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
	}
	if version == "ff" || strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "" {
		return false
	}
	if version == "00" {
		return len(s) == 55
	}
	return len(s) == 55 || s[55] == '-'
}
