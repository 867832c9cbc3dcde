package event_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/schemas"
)

// examples are the events of the schemas whose names begin so.
func examples(t *testing.T, kind string) map[string][]byte {
	t.Helper()
	names, err := fs.Glob(schemas.Files, "examples/events/"+kind+"-*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("examples %v, error %v", names, err)
	}
	events := map[string][]byte{}
	for _, name := range names {
		if events[name], err = schemas.Files.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	return events
}

// mustSatisfy validates a document against one of the schemas.
func mustSatisfy(t tester, schema string, document []byte) {
	t.Helper()
	s, err := schemas.Compile(schema)
	if err != nil {
		t.Fatalf("%v", err)
	}
	v, err := schemas.Value(document)
	if err != nil {
		t.Fatalf("%v in %.500s", err, document)
	}
	if faults := schemas.Faults(s.Validate(v)); len(faults) > 0 {
		t.Fatalf("%v in %.500s", faults, document)
	}
}

func TestExampleRequests(t *testing.T) {
	for name, body := range examples(t, "request") {
		m := inBody(string(body))
		m.Subject = "tools.request.default.normal.project-1"
		q, err := event.DecodeRequest(m, prefix)
		var reference *event.Reference
		if errors.As(err, &reference) {
			if !strings.Contains(name, "reference") || reference.Object != "r-4" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkAccepted(t, q)
		validated(t, m)
	}
}

func TestExampleResults(t *testing.T) {
	for name, body := range examples(t, "result") {
		m := inBody(string(body))
		validated(t, m)
		doc, err := event.DecodeResult(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if doc.Event.CausationID != doc.RequestID || doc.Event.ID != doc.RequestID+".result" || doc.Event.Subject != doc.Tool {
			t.Errorf("%s: %+v", name, doc.Event)
		}
	}
}

func TestExampleLiveEvents(t *testing.T) {
	for _, body := range examples(t, "live") {
		m := inBody(string(body))
		validated(t, m)
		mustLive(t, m)
	}
}

// The samples are requests of their projects, once they are in an event.
func TestSamples(t *testing.T) {
	samples, err := schemas.Samples()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range samples {
		body := s.Request
		var members struct{ SpecVersion string }
		if err := json.Unmarshal(body, &members); err != nil {
			t.Fatal(err)
		}
		if members.SpecVersion != "" {
			m := inBody(string(body))
			m.Subject = "tools.request.default.normal.demo"
			if _, err := event.DecodeRequest(m, prefix); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			continue
		}
		if _, err := event.DecodeData(body); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}
