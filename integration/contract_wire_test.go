package integration

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/textproto"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
)

const wireCatalogue = `
kind: Project
id: p
host_sandbox_path: BASE/p
---
kind: Project
id: other
host_sandbox_path: BASE/p
---
kind: Tool
name: echo
command: [cat]
`

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	hop    = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
)

// Every form that a client may send an event in, in any letter case.
func TestContractForms(t *testing.T) {
	t.Parallel()
	c := newContract(t, wireCatalogue, "--name", "form-worker")
	c.mkdir(t, "p")
	const attributes = `,"subject":"echo","traceparent":"` + parent + `","tracestate":"a=b","correlationid":"kön%ig 1","causationid":"not copied","unknown":7`
	data := call("p", "echo", `,"input":{"form":"x"},"plan":{"id":"plan-7"}`)
	binary := map[string]string{
		"ce-specversion": "1.0", "ce-id": "ID", "ce-source": "/planner", "ce-type": "dev.toolworker.request.v1", "ce-subject": "echo",
		"ce-traceparent": parent, "ce-tracestate": "a%3Db", "ce-correlationid": "k%C3%B6n%25ig%201", "ce-causationid": "not copied",
		"ce-unknown": "7", "Content-Type": "application/json; charset=utf-8",
	}
	cased := func(change func(string) string) map[string]string {
		h := map[string]string{}
		for name, value := range binary {
			h[change(name)] = value
		}
		return h
	}
	for id, m := range map[string]struct {
		header map[string]string
		body   string
	}{
		"structured":       {map[string]string{"Content-Type": "application/cloudevents+json"}, structured("ID", attributes, data)},
		"structured-cased": {map[string]string{"cOnTeNt-tYpE": "Application/CloudEvents+JSON; charset=UTF-8"}, structured("ID", attributes, data)},
		// Structured wins over headers that would be binary.
		"structured-first": {map[string]string{"Content-Type": "application/cloudevents+json", "ce-specversion": "9", "ce-id": "x"}, structured("ID", attributes, data)},
		"bare":             {nil, structured("ID", attributes, data)},
		"base64":           {nil, strings.Replace(structured("ID", attributes, `"`+base64Of(data)+`"`), `"data":`, `"data_base64":`, 1)},
		"binary":           {binary, data},
		"binary-upper":     {cased(strings.ToUpper), data},
		"binary-title":     {cased(textproto.CanonicalMIMEHeaderKey), data},
		"binary-quoted":    {with(binary, "ce-correlationid", `"k%C3%B6n%25ig 1"`), data},
	} {
		t.Run(id, func(t *testing.T) {
			header := map[string]string{"TraceParent": hop}
			for name, value := range m.header {
				header[name] = strings.ReplaceAll(value, "ID", id)
			}
			c.publish(t, "tools.request.default.high.p", header, strings.Replace(m.body, `"ID"`, quoted(id), 1))
			doc := c.result(t, "p", id)
			if !doc.Success || string(doc.Output) != `{"form":"x"}` || doc.PlanID != "plan-7" || doc.Tool != "echo" || doc.RequestID != id || doc.Worker != "form-worker" {
				t.Errorf("%s", doc.Raw)
			}
			e := doc.Event
			if e.Type != "dev.toolworker.result.v1" || e.ID != id+".result" || e.Source != "/toolworker/form-worker" || e.Subject != "echo" {
				t.Errorf("attributes %+v", e)
			}
			if e.CorrelationID != "kön%ig 1" || e.CausationID != id || e.TraceParent != parent || e.TraceState != "a=b" {
				t.Errorf("attributes %+v", e)
			}
			c.checkResultHeaders(t, id)
		})
	}
}

func with(h map[string]string, name, value string) map[string]string {
	changed := map[string]string{}
	for n, v := range h {
		changed[n] = v
	}
	changed[name] = value
	return changed
}

// checkResultHeaders looks at the headers of the result of a request whose
// last hop had the context of hop.
func (c *contract) checkResultHeaders(t *testing.T, id string) {
	t.Helper()
	s, err := c.client.JetStream().Stream(t.Context(), "TOOL_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.GetLastMsgForSubject(t.Context(), "tools.result.p."+id)
	if err != nil {
		t.Fatal(err)
	}
	h := m.Header
	if got := h["Nats-Msg-Id"]; len(got) != 1 || got[0] != "p/"+id+"/result" {
		t.Errorf("Nats-Msg-Id %q", got)
	}
	if got := h["Tool-Execution"]; len(got) != 1 || got[0] == "" {
		t.Errorf("Tool-Execution %q", got)
	}
	// The trace of the last hop goes on: its id, another span.
	if got := h["traceparent"]; len(got) != 1 || !strings.HasPrefix(got[0], hop[:36]) {
		t.Errorf("traceparent %q: want one of the trace of %s", got, hop)
	}
	if got := h["Content-Type"]; len(got) != 1 || got[0] != "application/cloudevents+json" {
		t.Errorf("Content-Type %q", got)
	}
}

// What JSON can carry arrives as it was sent, and what it cannot is refused.
func TestContractDocuments(t *testing.T) {
	t.Parallel()
	c := newContract(t, wireCatalogue)
	c.mkdir(t, "p")
	numbers := `{"a":9007199254740993,"b":-123456789012345678901234567890,"c":1e-400,"d":0.1000}`
	c.request(t, "p", "numbers", "", call("p", "echo", `,"input":`+numbers))
	c.request(t, "p", "defaults", "", call("p", "echo", ""))
	c.request(t, "p", "any-case", "", call("p", "echo", `,"tool_env":"HoSt","plan":{"execution_environment":"CONTAINER"}`))
	nested := strings.Repeat(`{"a":`, 500) + "1" + strings.Repeat("}", 500)
	c.request(t, "p", "nested", "", call("p", "echo", `,"input":`+nested))
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	refused := map[string]struct{ attributes, data, message string }{
		"deep":        {"", call("p", "echo", `,"input":{"a":`+deep+`}`), "levels"},
		"nan":         {"", call("p", "echo", `,"input":{"a":NaN}`), "/data/input/a"},
		"infinity":    {"", call("p", "echo", `,"input":{"a":-Infinity}`), "/data/input/a"},
		"duplicate":   {"", call("p", "echo", `,"input":{"a":1,"a":2}`), "/data/input/a"},
		"duplicates":  {"", call("p", "echo", `,"tool":"echo"`), "/data/tool"},
		"wrong-case":  {"", `{"project":"p","Tool":"echo"}`, "/data/Tool"},
		"null":        {"", call("p", "echo", `,"limits":null`), "/data/limits"},
		"list":        {"", call("p", "echo", `,"input":[1]`), "/data/input"},
		"zero":        {"", call("p", "echo", `,"limits":{"timeout_seconds":0}`), "/data/limits/timeout_seconds"},
		"project":     {"", call("other", "echo", ""), "/data/project"},
		"both":        {"", `{"project":"p","tool":"echo","inline":{"code":"1"}}`, "exactly one of tool and inline"},
		"type":        {`,"type":"dev.toolworker.request.v2"`, call("p", "echo", ""), "/type"},
		"traceparent": {`,"traceparent":"00-0-0-0"`, call("p", "echo", ""), "/traceparent"},
		"expirytime":  {`,"expirytime":"tomorrow"`, call("p", "echo", ""), "/expirytime"},
		"media-type":  {`,"datacontenttype":"text/xml"`, call("p", "echo", ""), "/datacontenttype"},
	}
	for id, r := range refused {
		c.request(t, "p", id, r.attributes, r.data)
	}
	for id, want := range map[string]string{"numbers": numbers, "defaults": "{}", "any-case": "{}", "nested": nested} {
		if doc := c.result(t, "p", id); !doc.Success || string(doc.Output) != want {
			t.Errorf("%s: %s", id, doc.Raw)
		}
	}
	for id, r := range refused {
		doc := c.result(t, "p", id)
		if doc.Status != tool.StatusRejected || doc.Error.Code != tool.InvalidRequest || !strings.Contains(doc.Error.Message, r.message) {
			t.Errorf("%s: %s %+v, want %s", id, doc.Status, doc.Error, r.message)
		}
	}
	if letters := c.deadLetters(t); len(letters) > 0 {
		t.Errorf("readable requests are dead letters: %+v", letters)
	}
}

// A megabyte of noise, in messages as large as the queue takes them, hurts
// nobody: all of it is put aside, and requests go on being served.
func TestContractNoise(t *testing.T) {
	t.Parallel()
	c := newContract(t, wireCatalogue)
	c.mkdir(t, "p")
	const size = 200 << 10
	random := rand.NewChaCha8([32]byte{1})
	noise := make([]byte, size)
	kinds := map[string]struct {
		header map[string]string
		begin  string
	}{
		"bytes":      {nil, ""},
		"object":     {nil, `{"specversion":"1.0","id":"noise-object","data":{`},
		"text":       {map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"`},
		"binary":     {map[string]string{"ce-specversion": "1.0", "ce-id": "noise-binary", "ce-source": "/s", "ce-type": "t"}, ""},
		"no-id":      {map[string]string{"ce-specversion": "1.0"}, "{}"},
		"batch":      {map[string]string{"Content-Type": "application/cloudevents-batch+json"}, "[]"},
		"header":     {map[string]string{"ce-specversion": "1.0", "ce-id": "%zz", "ce-source": "%"}, ""},
		"whitespace": {nil, strings.Repeat(" \n", 1000)},
	}
	for kind, k := range kinds {
		_, _ = random.Read(noise)
		body := k.begin
		if kind != "no-id" && kind != "batch" {
			body += string(noise)
		}
		c.publish(t, "tools.request.default.high.p", k.header, body)
	}
	_, err := c.client.JetStream().Publish(t.Context(), "tools.request.default.high.p", make([]byte, 600<<10))
	if err == nil || !strings.Contains(err.Error(), "maximum") {
		t.Errorf("600 KiB: %v, want a refusal", err)
	}

	if doc := c.ask(t, "p", "after", call("p", "echo", `,"input":{"served":true}`)); !doc.Success {
		t.Errorf("%s", doc.Raw)
	}
	// Those whose id can be read have a result as well.
	for _, id := range []string{"noise-object", "noise-binary"} {
		if doc := c.result(t, "p", id); doc.Status != tool.StatusRejected || doc.Error.Code != tool.InvalidRequest {
			t.Errorf("%s: %s", id, doc.Raw)
		}
	}
	eventually(t, "everything is settled", func() bool { return len(c.deadLetters(t)) == len(kinds) })
	for _, d := range c.deadLetters(t) {
		if d.Code != tool.InvalidRequest || d.Project != "p" || d.Reason == "" || len(d.Reason) > 1000 {
			t.Errorf("dead letter %+v", d)
		}
	}
	status, err := c.client.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, lane := range status.Lanes {
		if lane.Waiting+lane.Running > 0 {
			t.Errorf("left in the queue: %+v", lane)
		}
	}
}

// The data of a request may lie in the project's own store.
func TestContractReferences(t *testing.T) {
	t.Parallel()
	c := newContract(t, wireCatalogue)
	c.mkdir(t, "p")
	const secret = "do not quote"
	text := strings.Repeat("0123456789", 100_000)
	good := call("p", "echo", `,"input":{"text":"`+text+`"}`)
	put := func(project, id, data string) string {
		js := c.client.JetStream()
		store, err := js.CreateOrUpdateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "tool_inputs_" + project})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.PutString(t.Context(), id, data); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(data))
		return fmt.Sprintf("nats-obj://tool_inputs_%s/%s?sha256=%s", project, id, hex.EncodeToString(sum[:]))
	}
	reference := func(id, dataref, more string) {
		c.publish(t, "tools.request.default.normal.p", nil, fmt.Sprintf(
			`{"specversion":"1.0","id":%q,"source":"/planner","type":"dev.toolworker.request.v1","dataref":%q%s}`, id, dataref, more))
	}
	reference("good", put("p", "good", good), "")
	reference("upper", strings.ToUpper(put("p", "upper", good)[len("nats-obj://tool_inputs_p/upper?sha256="):]), "") // no reference at all
	reference("beside", put("p", "beside", secret), `,"data":`+call("p", "echo", `,"input":{"used":"data"}`))
	reference("hash", strings.Replace(put("p", "hash", secret), "sha256=", "sha256=00", 1)[:len("nats-obj://tool_inputs_p/hash?sha256=")+64], "")
	reference("foreign", put("other", "foreign", call("other", "echo", "")), "")
	reference("missing", strings.Replace(put("p", "there", secret), "/there?", "/missing?", 1), "")
	reference("typo", put("p", "typo", `{"project":"p","tool":"echo","`+"inptu"+`":1}`), "")
	reference("noise", put("p", "noise", "\xff\x00{"), "")
	c.publish(t, "tools.request.default.normal.p", map[string]string{
		"ce-specversion": "1.0", "ce-id": "binary", "ce-source": "/planner", "ce-type": "dev.toolworker.request.v1", "ce-dataref": put("p", "binary", good),
	}, "")

	for _, id := range []string{"good", "binary"} {
		doc := c.result(t, "p", id)
		output := doc.Output
		if ref, moved := doc.Refs["output"]; moved {
			output = c.object(t, ref)
		}
		if !doc.Success || string(output) != `{"text":"`+text+`"}` {
			t.Errorf("%s: %.300s", id, doc.Raw)
		}
	}
	if doc := c.result(t, "p", "beside"); !doc.Success || string(doc.Output) != `{"used":"data"}` {
		t.Errorf("beside: %s", doc.Raw)
	}
	for id, want := range map[string]string{
		"upper": "/dataref", "hash": "/dataref", "foreign": "not an object of this project", "missing": "not found",
		"typo": "/data/inptu", "noise": "no JSON",
	} {
		doc := c.result(t, "p", id)
		if doc.Status != tool.StatusRejected || doc.Error.Code != tool.InvalidRequest || !strings.Contains(doc.Error.Message, want) {
			t.Errorf("%s: %s, want %q", id, doc.Raw, want)
		}
		if strings.Contains(string(doc.Raw), secret) {
			t.Errorf("%s: it quotes the object: %s", id, doc.Raw)
		}
	}
}

// object reads what was moved, checked by size and hash.
func (c *contract) object(t *testing.T, ref tool.Ref) []byte {
	t.Helper()
	store, err := c.client.JetStream().ObjectStore(t.Context(), "tool_payloads")
	if err != nil {
		t.Fatal(err)
	}
	content, err := store.GetBytes(t.Context(), ref.Object)
	if err != nil {
		t.Fatalf("object %s: %v", ref.Object, err)
	}
	if sum := sha256.Sum256(content); int64(len(content)) != ref.SizeBytes || hex.EncodeToString(sum[:]) != ref.SHA256 {
		t.Fatalf("object %s: it has %d bytes and hash %x, the reference says %+v", ref.Object, len(content), sum, ref)
	}
	return content
}

func (c *contract) deadLetters(t *testing.T) []queue.DeadLetter {
	t.Helper()
	var letters []queue.DeadLetter
	if err := c.client.DeadLetters(context.WithoutCancel(t.Context()), "p", func(d queue.DeadLetter) bool {
		letters = append(letters, d)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	return letters
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
