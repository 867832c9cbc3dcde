package schemas_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/schemas"
)

// asyncAPI is the document, parsed.
func asyncAPI(t *testing.T) map[string]any {
	t.Helper()
	data, err := schemas.Files.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := yaml.UnmarshalWithOptions(data, &doc, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	return doc
}

// member descends into a document.
func member(t *testing.T, doc any, names ...string) any {
	t.Helper()
	for _, name := range names {
		object, ok := doc.(map[string]any)
		if !ok || object[name] == nil {
			t.Fatalf("no %s in %v", name, names)
		}
		doc = object[name]
	}
	return doc
}

func TestAsyncAPIReferencesResolve(t *testing.T) {
	doc := asyncAPI(t)
	references := 0
	var walk func(v any, place string)
	walk = func(v any, place string) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				references++
				if pointer, local := strings.CutPrefix(ref, "#/"); local {
					member(t, doc, strings.Split(pointer, "/")...)
				} else if _, err := schemas.Files.ReadFile(path.Clean(ref)); err != nil {
					t.Errorf("%s: %v", place, err)
				}
			}
			for name, m := range v {
				walk(m, place+"/"+name)
			}
		case []any:
			for _, m := range v {
				walk(m, place)
			}
		}
	}
	walk(doc, "")
	if references < 30 {
		t.Errorf("%d references", references)
	}
}

// Subjects and their parameters, and the messages of each.
func TestAsyncAPIChannels(t *testing.T) {
	doc := asyncAPI(t)
	want := map[string][]string{
		"tools.request.{pool}.{priority}.{project}": {"request", "requestInHeaders"},
		"tools.wake.{pool}.{priority}.{project}":    {"wake"},
		"tools.result.{project}.{request}":          {"result"},
		"tools.event.{project}.{request}":           {"output", "retrying", "started"},
		"tools.cancel.{project}.{request}":          {"cancellation"},
		"tools.dead.{pool}.{project}.{code}":        {"deadLetter"},
	}
	got := map[string][]string{}
	for name, channel := range member(t, doc, "channels").(map[string]any) {
		address := member(t, channel, "address").(string)
		got[address] = slices.Sorted(maps.Keys(member(t, channel, "messages").(map[string]any)))
		var inAddress []string
		for _, token := range strings.Split(address, ".") {
			if strings.HasPrefix(token, "{") {
				inAddress = append(inAddress, strings.Trim(token, "{}"))
			}
		}
		slices.Sort(inAddress)
		if diff := cmp.Diff(inAddress, slices.Sorted(maps.Keys(member(t, channel, "parameters").(map[string]any)))); diff != "" {
			t.Errorf("%s: parameters (-address +declared):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("channels (-want +got):\n%s", diff)
	}
}

// Every example and every schema of an event has its place in the document.
func TestAsyncAPINamesEverything(t *testing.T) {
	data, err := schemas.Files.ReadFile("asyncapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := schemas.Files.ReadDir("examples/events")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{schemas.Request, schemas.RequestEvent, schemas.ResultEvent, schemas.LiveEvent, schemas.DeadLetter}
	for _, e := range entries {
		names = append(names, "examples/events/"+e.Name())
	}
	for _, name := range names {
		if !strings.Contains(string(data), "'./"+name+"'") {
			t.Errorf("%s is not in the document", name)
		}
	}
}
