package event_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

func sumOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

// refer decodes a request whose data is behind dataref.
func refer(t *testing.T, m event.Message) *event.Reference {
	t.Helper()
	q, err := event.DecodeRequest(m, prefix)
	var r *event.Reference
	if !errors.As(err, &r) {
		t.Fatalf("decode %.300s: error %v, expected a reference", m.Data, err)
	}
	if q == nil || q.ID != "r-1" || q.Project != "p-1" {
		t.Fatalf("request %+v", q)
	}
	return r
}

func TestReferencedData(t *testing.T) {
	m, err := event.EncodeReferenced(full(), prefix, "tool_inputs_p-1", "r-1", sumOf(fullData))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(m.Data), `"data"`) {
		t.Errorf("the event has data: %s", m.Data)
	}
	validated(t, m)
	mustSatisfy(t, schemas.RequestEvent, m.Data)
	r := refer(t, m)
	if r.Project != "p-1" || r.Bucket != "tool_inputs_p-1" || r.Object != "r-1" || r.SHA256 != sumOf(fullData) {
		t.Errorf("reference %+v", r)
	}
	q, err := r.Decode([]byte(fullData))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(full(), q, sameTime); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

func TestReferencesInEveryForm(t *testing.T) {
	ref := "nats-obj://fleet-2_inputs_p-1/older?sha256=" + strings.ToUpper(sumOf(minimal))
	for name, m := range map[string]event.Message{
		"structured": inBody(`{"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","dataref":"` + ref + `"}`),
		"null data":  inBody(`{"specversion":"1.0","id":"r-1","source":"/planner","type":"dev.toolworker.request.v1","data":null,"dataref":"` + ref + `"}`),
		"binary":     inHeaders("", "CE-DATAREF", ref),
	} {
		t.Run(name, func(t *testing.T) {
			r := refer(t, m)
			if r.Object != "older" || r.SHA256 != sumOf(minimal) {
				t.Errorf("reference %+v", r)
			}
			if q, err := r.Decode([]byte(minimal)); err != nil || q.Tool != "t" || string(q.Input) != "{}" {
				t.Errorf("error %v, request %+v", err, q)
			}
		})
	}
}

func TestReferencesRefused(t *testing.T) {
	sum := "?sha256=" + sumOf(minimal)
	for _, ref := range []string{
		"nats-obj://tool_inputs_p-2/r-1" + sum, "nats-obj://tool_inputs_xp-1/r-1" + sum, "nats-obj://tool_payloads/r-1" + sum, "nats-obj://_inputs_p-1/r-1" + sum,
		"nats-obj://a/b_inputs_p-1/r-1" + sum, "nats-obj://tool_inputs_p-1@tool_inputs_p-2/r-1" + sum, "nats-obj://tool_inputs_p-1:1/r-1" + sum,
		"nats-obj://tool_inputs_p-1/r-1", "nats-obj://tool_inputs_p-1/" + sum, "nats-obj://tool_inputs_p-1/a/b" + sum, "nats-obj://tool_inputs_p-1/..%2fx" + sum,
		"nats-obj://tool_inputs_p-1/r-1?sha256=abc", "nats-obj://tool_inputs_p-1/r-1?sha256=" + strings.Repeat("g", 64),
		"nats-obj://tool_inputs_p-1/r-1" + sum + "&sha256=" + sumOf("x"), "nats-obj://tool_inputs_p-1/r-1" + sum + "&x=1", "nats-obj://tool_inputs_p-1/r-1" + sum + "#f",
		"http://tool_inputs_p-1/r-1" + sum, "tool_inputs_p-1/r-1" + sum, "file:///etc/passwd", "nats-obj:tool_inputs_p-1/r-1" + sum, "::", "nats-obj://%zz/r-1" + sum,
	} {
		e := mustReject(t, inHeaders("", "ce-dataref", strings.ReplaceAll(ref, "%", "%25")))
		wantContains(t, e.Message, "/dataref: ", "expected nats-obj://<prefix>_inputs_p-1/<request id>?sha256=<64 hexadecimal digits>")
	}
	// With another fault both are told.
	e := mustReject(t, inHeaders("", "ce-dataref", "x", "ce-time", "y"))
	wantContains(t, e.Message, "/dataref: ", "/time: ")
}

// Nothing of an object is quoted unless it is the one that was meant.
func TestReferencedDataRefused(t *testing.T) {
	const secret = `{"project":"p-1","tool":"TOP SECRET"}`
	decode := func(promised, data string) (*tool.Request, error) {
		return refer(t, inHeaders("", "ce-dataref", "nats-obj://tool_inputs_p-1/r-1?sha256="+sumOf(promised), "ce-subject", "t")).Decode([]byte(data))
	}
	q, err := decode(minimal, secret)
	var e *tool.Error
	if !errors.As(err, &e) || e.Code != tool.InvalidRequest || q == nil || q.ID != "r-1" {
		t.Fatalf("error %v, request %+v", err, q)
	}
	if strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "/dataref: object r-1 of tool_inputs_p-1: its sha256 is not that of the dataref") {
		t.Errorf("error %v", err)
	}
	for data, want := range map[string]string{
		`hello`:                        "/data: no JSON",
		`{"project":"p-2","tool":"t"}`: `/data/project: "p-2": expected "p-1"`,
		`{"project":"p-1","tool":"u"}`: `/subject: "t": expected "u"`,
		`{"project":"p-1","toll":"t"}`: `/data/toll: unknown member`,
		`{"project":"p-1","tool":"t",` + strings.Repeat(" ", 2<<20) + `"x":1}`: `/data/x: unknown member`,
		strings.Repeat("[", 2<<20): `/data`,
	} {
		q, err := decode(data, data)
		if !errors.As(err, &e) || e.Code != tool.InvalidRequest || q.ID != "r-1" || len(e.Message) > 500 {
			t.Errorf("%.100s: error %v, request %+v", data, err, q)
			continue
		}
		wantContains(t, e.Message, want)
	}
	refused := refer(t, inHeaders("", "ce-dataref", "nats-obj://tool_inputs_p-1/r-1?sha256="+sumOf(minimal))).Refuse("it is not there")
	wantContains(t, refused.Message, "/dataref: object r-1 of tool_inputs_p-1: it is not there")
}
