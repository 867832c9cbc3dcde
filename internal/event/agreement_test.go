package event_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/schemas"
)

// oddValues are what somebody's planner might put anywhere.
var oddValues = []string{
	`null`, `true`, `0`, `1`, `-1`, `1.0`, `1.5`, `1e3`, `1e-9`, `1e9`, `9.99e-10`, `1000000001`, `9007199254740991`, `9007199254740992`, `1e400`, `1000`, `1001`,
	`""`, `"host"`, `"CONTAINER"`, `"hosts"`, `"p-1"`, `"a.b"`, `"\u0000"`, `"x"`, `[]`, `["a"]`, `["\u0000"]`, `[""]`, `[1]`, `{}`, `{"path":"\u0000"}`,
	`{"a":{"b_file":["\u0000"]}}`, `{"a_path":{"a":"\u0000"}}`, `{"code":"1"}`, `{"writes":true}`, `{"id":"p"}`, `{"timeout_seconds":1}`,
}

// rightValues are what belongs into a member.
var rightValues = map[string]string{
	"project": `"p-1"`, "tool": `"t"`, "inline": `{"code":"print(1)"}`, "input": `{"path":"a"}`, "tool_env": `"host"`, "plan": `{"id":"p"}`,
	"limits": `{"pids":64}`, "outputs": `["a"]`, "retry": `{"max_attempts":2}`, "stream": `true`,
	"name": `"n"`, "source": `"custom"`, "code": `"1"`, "capability": `{"writes":true}`, "writes": `true`, "network": `false`,
	"id": `"p"`, "execution_environment": `"Host"`, "read_only": `false`, "timeout_seconds": `1.5`, "max_output_bytes": `1`, "memory_bytes": `1`,
	"cpus": `0.5`, "cpu_seconds": `1`, "pids": `1`, "file_size_bytes": `1`, "open_files": `1`, "max_attempts": `1`, "backoff_seconds": `0`,
}

// object draws an object of some of these members; each has a right value,
// odd of a hundred times an odd one, or for those of nested one that is drawn
// in turn.
func object(odd int, nested map[string][]string, members []string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		var parts []string
		for _, name := range members {
			switch n := rapid.IntRange(0, 99).Draw(t, name); {
			case n < 10:
			case n >= 100-odd:
				parts = append(parts, `"`+name+`":`+rapid.SampledFrom(oddValues).Draw(t, "odd"))
			default:
				value := rightValues[name]
				if inner := nested[name]; inner != nil {
					value = object(odd, nested, inner).Draw(t, name)
				}
				parts = append(parts, `"`+name+`":`+value)
			}
		}
		if rapid.IntRange(0, 99).Draw(t, "unknown") < odd/2 {
			parts = append(parts, `"`+rapid.SampledFrom([]string{"Project", "unknown", "", "tools"}).Draw(t, "name")+`":1`)
		}
		return "{" + strings.Join(parts, ",") + "}"
	})
}

var requestMembers = map[string][]string{
	"inline":     {"name", "source", "code", "capability"},
	"capability": {"writes", "network"},
	"plan":       {"id", "execution_environment", "read_only"},
	"limits":     {"timeout_seconds", "max_output_bytes", "memory_bytes", "cpus", "cpu_seconds", "pids", "file_size_bytes", "open_files"},
	"retry":      {"max_attempts", "backoff_seconds"},
}

// Whatever the schema accepts the code accepts, and the other way round.
func TestSchemaAndCodeAgree(t *testing.T) {
	schema, err := schemas.Compile(schemas.Request)
	if err != nil {
		t.Fatal(err)
	}
	optional := []string{"input", "tool_env", "plan", "limits", "outputs", "retry", "stream"}
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		odd := rapid.SampledFrom([]int{0, 2, 10}).Draw(t, "odd")
		what := rapid.SampledFrom([][]string{{"project", "tool"}, {"project", "inline"}, {"project", "tool", "inline"}}).Draw(t, "what")
		document := object(odd, requestMembers, slices.Concat(what, optional)).Draw(t, "document")
		v, err := schemas.Value([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		invalid := schema.Validate(v)
		_, err = event.DecodeData([]byte(document))
		if (invalid == nil) != (err == nil) {
			t.Fatalf("%s\nschema: %v\ncode: %v", document, schemas.Faults(invalid), err)
		}
		if err == nil {
			accepted++
		} else {
			refused++
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d documents accepted, %d refused", accepted, refused)
	}
}

// What is accepted says the same once it was written and read again.
func TestRequestsSurviveARoundTrip(t *testing.T) {
	members := []string{"project", "inline", "input", "tool_env", "plan", "limits", "outputs", "retry", "stream"}
	rapid.Check(t, func(t *rapid.T) {
		document := object(1, requestMembers, members).Draw(t, "document")
		q, err := event.DecodeData([]byte(document))
		if err != nil {
			t.Skip(document)
		}
		data, err := event.RequestData(q)
		if err != nil {
			t.Fatal(err)
		}
		again, err := event.DecodeData(data)
		if err != nil {
			t.Fatalf("%s was written as %s: %v", document, data, err)
		}
		first, _ := json.Marshal(q)
		second, _ := json.Marshal(again)
		if string(first) != string(second) {
			t.Fatalf("%s was written as %s\nfirst  %s\nsecond %s", document, data, first, second)
		}
	})
}
