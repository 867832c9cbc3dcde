package schemas_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/schemas"
)

func mustSamples(t *testing.T) map[string]schemas.Sample {
	t.Helper()
	samples, err := schemas.Samples()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]schemas.Sample{}
	for i, s := range samples {
		if s.Title == "" {
			t.Errorf("%s has no title", s.Name)
		}
		if i > 0 && s.Name <= samples[i-1].Name {
			t.Errorf("%s comes after %s", s.Name, samples[i-1].Name)
		}
		byName[s.Name] = s
	}
	return byName
}

func TestSamplesAreRequests(t *testing.T) {
	samples := mustSamples(t)
	if len(samples) < 7 {
		t.Fatalf("%d samples", len(samples))
	}
	for name, s := range samples {
		schema := schemas.Request
		if strings.Contains(string(s.Request), `"specversion"`) {
			schema = schemas.RequestEvent
		}
		if faults := faultsOf(t, schema, string(s.Request)); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults)
		}
	}
	expects, _ := fs.Glob(schemas.Files, "examples/demo/*.expect.json")
	if len(expects) != len(samples) {
		t.Errorf("%d requests, but %d expectations", len(samples), len(expects))
	}
}

func TestJudge(t *testing.T) {
	samples := mustSamples(t)
	for _, c := range []struct {
		sample, result string
		want           []string
	}{
		{"03-exit-status", `{"status":"failed","error":{"code":"exit_status","message":"Execution failed (exit code 3): it was told to fail"},
			"metadata":{"process":{"exit_code":3}}}`, nil},
		{"03-exit-status", `{"status":"failed","error":{"code":"timeout","message":"m"},"metadata":{"process":{"exit_code":4}}}`, []string{
			`/error/code: "timeout": expected "exit_status"`,
			`/error/message: "m": expected "Execution failed (exit code 3): it was told to fail"`,
			`/metadata/process/exit_code: 4: expected 3`}},
		{"05-write-refused", `{"status":"succeeded","output":{}}`, []string{
			"/error: missing, but required", "/output: false schema", `/status: "succeeded": expected "rejected"`}},
		{"01-read-a-file", `{"status":"succeeded","plan_id":"plan-1","output":{"text":"module github.com/toolworker/toolworker\n","lines":1,"more":true}}`, nil},
	} {
		var got []string
		for _, f := range samples[c.sample].Judge([]byte(c.result)) {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.sample, diff)
		}
	}
	if faults := samples["01-read-a-file"].Judge([]byte("noise")); len(faults) != 1 {
		t.Errorf("noise: %v", faults)
	}
}

// Every example satisfies the schema that its name says.
func TestExamples(t *testing.T) {
	kinds := map[string]string{
		"request-": schemas.RequestEvent, "result-": schemas.ResultEvent, "live-": schemas.LiveEvent, "dead-letter.headers": schemas.DeadLetter,
	}
	seen := map[string]int{}
	names, err := fs.Glob(schemas.Files, "examples/events/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		data, err := schemas.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, schema := range kinds {
			if !strings.HasPrefix(name, "examples/events/"+kind) {
				continue
			}
			seen[kind]++
			if faults := faultsOf(t, schema, string(data)); len(faults) > 0 {
				t.Errorf("%s: %v", name, faults)
			}
			// Not by accident: the other schemas refuse it.
			for other, schema := range kinds {
				if other != kind && len(faultsOf(t, schema, string(data))) == 0 {
					t.Errorf("%s is a %s as well", name, other)
				}
			}
		}
	}
	for kind := range kinds {
		if seen[kind] == 0 {
			t.Errorf("no example of %s", kind)
		}
	}
}
