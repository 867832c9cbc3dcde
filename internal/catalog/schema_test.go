package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

func mustCompile(t testing.TB, text string) *Schema {
	t.Helper()
	s, faults := compileText(t, text)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return s
}

func compileText(t testing.TB, text string) (*Schema, []schemas.Fault) {
	t.Helper()
	doc, err := schemas.Value([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return compileSchema(doc)
}

func TestCompileSchemaFaults(t *testing.T) {
	elsewhere := func(pointer, address string) string {
		return pointer + `: refers to "` + address + `": schemas are never loaded from elsewhere`
	}
	for _, tt := range []struct {
		name, schema string
		want         []string
	}{
		{"network", `{"properties":{"a":{"$ref":"http://127.0.0.1:1/y#/a"}}}`, []string{elsewhere("/properties/a/$ref", "http://127.0.0.1:1/y")}},
		{"file", `{"allOf":[true,{"$ref":"file:///etc/passwd"}]}`, []string{elsewhere("/allOf/1/$ref", "file:///etc/passwd")}},
		{"absolute path", `{"allOf":[true,{"$ref":"/etc/passwd"}]}`, []string{elsewhere("/allOf/1/$ref", "/etc/passwd")}},
		{"relative path", `{"$ref":"other.json"}`, []string{elsewhere("/$ref", "/other.json")}},
		{"meta-schema", `{"$schema":"http://schema.example/draft"}`, []string{elsewhere("/$schema", "http://schema.example/draft")}},
		{"dynamic", `{"$dynamicRef":"urn:x:y"}`, []string{elsewhere("/$dynamicRef", "urn:x:y")}},
		{"own id", `{"$id":"https://schema.example/a/b","$ref":"c"}`, []string{elsewhere("/$ref", "https://schema.example/a/c")}},
		{"missing definition", `{"properties":{"a":{"$ref":"#/$defs/no"}}}`,
			[]string{`/properties/a/$ref: invalid schema: json-pointer in "#/$defs/no" not found`}},
		{"types", `{"type":"object","properties":{"a":{"minimum":"x"},"b":{"required":"c"}}}`, []string{
			"/properties/a/minimum: is string, expected number", "/properties/b/required: is string, expected array"}},
		{"pattern", `{"properties":{"a":{"pattern":"(?=x)"}}}`, []string{
			`/properties/a/pattern: "(?=x)": expected format regex (RE2: without look-around and back-references)`}},
		{"negative", `{"minLength":-1}`, []string{"/minLength: -1: expected at least 0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, faults := compileText(t, tt.schema)
			var got []string
			for _, f := range faults {
				got = append(got, f.String())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSchemaAccepts(t *testing.T) {
	for _, schema := range []string{
		`true`, `{}`, `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object"}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`,
		`{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"}}}}}`,
		`{"$id":"https://schema.example/a","$ref":"b","$defs":{"b":{"$id":"b","type":"object"}}}`,
		`{"type":"object","properties":{"schema":{"$ref":"https://json-schema.org/draft/2020-12/schema"}}}`,
	} {
		if err := mustCompile(t, schema).CheckInput(json.RawMessage(`{"next":{"next":{}},"schema":{}}`)); err != nil {
			t.Errorf("%s: %v", schema, err)
		}
	}
	var none *Schema
	if err := none.CheckInput([]byte(`{}`)); err != nil {
		t.Errorf("no schema: %v", err)
	}
}

func TestSchemaListsEveryViolation(t *testing.T) {
	s := mustCompile(t, `{
		"type":"object","required":["path"],"additionalProperties":false,
		"properties":{
			"path":{"type":"string"},
			"count":{"type":"integer","minimum":0},
			"list":{"type":"array","items":{"enum":["a","b"]}},
			"odd/name":{"type":"string"}}}`)
	err := s.CheckInput([]byte(`{"count":-1,"list":["a","c","d"],"odd/name":1,"extra":true}`))
	if err == nil || err.Code != tool.InvalidInput {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"/path: ", "/count: -1", "/list/1: \"c\"", "/list/2: \"d\"", "/odd~1name: ", "/extra: "} {
		if !strings.Contains(err.Message, want) {
			t.Errorf("%q is missing from %s", want, err.Message)
		}
	}
	if out := s.CheckOutput([]byte(`{"path":1}`)); out == nil || out.Code != tool.InvalidOutput || !strings.Contains(out.Message, "/path") {
		t.Errorf("output: %v", out)
	}
	if err := s.CheckInput([]byte(`{"path":"x","count":3}`)); err != nil {
		t.Errorf("a valid input: %v", err)
	}
}

func TestSchemaBoundsItsText(t *testing.T) {
	s := mustCompile(t, `{"items":{"type":"integer"}}`)
	var items []string
	for range 50_000 {
		items = append(items, `"x"`)
	}
	err := s.CheckInput([]byte("[" + strings.Join(items, ",") + "]"))
	if err == nil || len(err.Message) > maxFaultText+200 {
		t.Fatalf("a message of %d bytes", len(err.Message))
	}
	if !strings.Contains(err.Message, "/0: is string") || !strings.Contains(err.Message, " more") {
		t.Errorf("the first and the count are missing: %.200s ... %s", err.Message, err.Message[len(err.Message)-50:])
	}
}

func TestSchemaKeepsNumbers(t *testing.T) {
	s := mustCompile(t, `{"properties":{"n":{"const":9007199254740993},"big":{"maximum":1e300},"half":{"multipleOf":0.01}}}`)
	for doc, ok := range map[string]bool{
		`{"n":9007199254740993}`:                     true,
		`{"n":9007199254740992}`:                     false,
		`{"n":9007199254740994}`:                     false,
		`{"half":0.07}`:                              true, // in binary fractions it is no multiple
		`{"big":1e301}`:                              false,
		`{"big":1e2000000000}`:                       false, // neither computed nor a panic
		`{"big":1` + strings.Repeat("0", 2000) + `}`: false,
		`{"n":NaN}`:                                  false,
		`{"n":1,"n":1}`:                              false,
		`{} {}`:                                      false,
		``:                                           false,
		strings.Repeat("[", 100_000):                 false,
	} {
		if err := s.CheckOutput([]byte(doc)); (err == nil) != ok {
			t.Errorf("%.60s: %v", doc, err)
		}
	}
}

func ExampleSchema_CheckInput() {
	doc, _ := schemas.Value([]byte(`{"required":["path"],"properties":{"count":{"type":"integer"}}}`))
	s, _ := compileSchema(doc)
	fmt.Println(s.CheckInput(json.RawMessage(`{"count":"five"}`)))
	// Output: invalid_input: input violates input_schema: /count: is string, expected integer; /path: missing, but required
}
