package schemas_test

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/schemas"
)

// faultsOf validates a JSON document and lists its faults as strings.
func faultsOf(t *testing.T, schema, document string) []string {
	t.Helper()
	s, err := schemas.Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	v, err := schemas.Value([]byte(document))
	if err != nil {
		t.Fatalf("parse %s: %v", document, err)
	}
	var list []string
	for _, f := range schemas.Faults(s.Validate(v)) {
		list = append(list, f.String())
	}
	return list
}

func TestEverySchemaCompiles(t *testing.T) {
	names, err := fs.Glob(schemas.Files, "*.schema.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("schemas %v, error %v", names, err)
	}
	for _, name := range names {
		first, err := schemas.Compile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if again, _ := schemas.Compile(name); again != first {
			t.Errorf("%s was compiled twice", name)
		}
		data, err := schemas.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var parts struct {
			ID   string         `json:"$id"`
			Defs map[string]any `json:"$defs"`
		}
		if err := json.Unmarshal(data, &parts); err != nil || !strings.HasSuffix(parts.ID, "/v1/"+name) {
			t.Errorf("%s: error %v, $id %s", name, err, parts.ID)
		}
		for part := range parts.Defs {
			if _, err := schemas.Compile(name + "#/$defs/" + part); err != nil {
				t.Errorf("%s: %v", part, err)
			}
		}
	}
}

func TestCompileFetchesNothing(t *testing.T) {
	_, err := schemas.Compile("elsewhere.json")
	if err == nil || !strings.Contains(err.Error(), "elsewhere.json") {
		t.Errorf("error %v, expected one that names the schema", err)
	}
}

func TestCatalogueEntries(t *testing.T) {
	for _, c := range []struct {
		name, schema, document string
		want                   []string
	}{
		{"tool", schemas.Tool, `{"kind":"Tool","name":"file_read","description":"d","enabled":true,"source":"custom",
			"command":["python3","-I","file_read.py"],"input_schema":{"type":"object"},"output_schema":{},
			"capability":{"writes":false,"network":false},"tool_env":"","environments":["host","container"],"isolation":"full",
			"idempotent":true,"env":{"A":"b"},"env_from":["API_TOKEN"],
			"limits":{"timeout_seconds":120,"memory_bytes":536870912,"cpus":1,"pids":128,"concurrency":8}}`, nil},
		{"tool with code", schemas.Tool, `{"kind":"Tool","name":"t","code":"print(1)"}`, nil},
		{"tool of another source", schemas.Tool, `{"kind":"Tool","name":"t","source":"mcp"}`, nil},
		{"tool without either", schemas.Tool, `{"kind":"Tool","name":"t"}`, []string{"/: expected exactly one of command and code"}},
		{"tool with both", schemas.Tool, `{"kind":"Tool","name":"t","code":"1","command":["a"]}`,
			[]string{"/: expected exactly one of command and code"}},
		{"empty argv", schemas.Tool, `{"kind":"Tool","name":"t","command":[]}`, []string{"/command: expected an argv of at least one string"}},
		{"every fault", schemas.Tool, `{"kind":"tool","name":"a b","code":"1","nmae":1,"limits":{"timeout_seconds":0,"pids":1.5},
			"env":{"1A":"b","B":"\u0000"},"tool_env":"moon","isolation":"Full"}`, []string{
			`/env/1A: expected a name of A-Z a-z 0-9 _ that does not begin with a digit`,
			`/env/B: "\u0000": expected a string without NUL`,
			`/isolation: "Full": expected full, reduced or none`,
			`/kind: "tool": expected "Tool"`,
			`/limits/pids: is number, expected a whole number from 1 to 9007199254740991`,
			`/limits/timeout_seconds: 0: expected seconds from 1e-9 to 1e9`,
			`/name: "a b": expected 1 to 128 characters of A-Z a-z 0-9 _ -`,
			`/nmae: unknown member`,
			`/tool_env: "moon": expected host or container, in any letter case, or the empty string`,
		}},
		{"project", schemas.Project, `{"kind":"Project","id":"project-1","enabled":true,"execution_environment":"",
			"host_sandbox_path":"/srv/projects/project-1","read_only":false,
			"allow":{"environments":["host","container"],"inline":{"enabled":true,"environments":["host","container"],"writes":true,
			"network":false},"tools":["*"],"pools":["*"]},"isolation":"full","protect":[".devcontainer",".git/hooks",".git/config"],
			"env":{"GREETING":"hello"},"defaults":{"timeout_seconds":30},"maximum":{"timeout_seconds":600,"concurrency":16},
			"resources":[{"type":"container-instance","container_id":"my-container","workspace_folder":"/workspace"},
			{"type":"container-instance","image":"ghcr.io/org/devimage:latest","workspace_folder":"/workspace"},
			{"type":"devcontainer-instance","container_id":"abc123","workspace_folder":"/workspace"},
			{"type":"devcontainer-file","path":".devcontainer/devcontainer.json","trusted":false,
			"sha256":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}]}`, nil},
		{"roots of all", schemas.Project, `{"kind":"Project","id":"p","host_sandbox_path":"//"}`,
			[]string{`/host_sandbox_path: "//": expected an absolute path without NUL, not the root of all, or the empty string`}},
		{"protect above", schemas.Project, `{"kind":"Project","id":"p","protect":["/etc","../x","a/../b","..a"]}`, []string{
			`/protect/0: "/etc": expected a relative path without NUL and ..`,
			`/protect/1: expected a relative path without NUL and ..`,
			`/protect/2: expected a relative path without NUL and ..`}},
		{"defaults have no concurrency", schemas.Project, `{"kind":"Project","id":"p","defaults":{"concurrency":1}}`,
			[]string{"/defaults/concurrency: unknown member"}},
		{"resources", schemas.Project, `{"kind":"Project","id":"p","resources":[{"type":"container-instance"},
			{"type":"devcontainer-instance","image":"a"},{"type":"devcontainer-file","path":"d.json"},
			{"type":"container-instance","image":"a","trusted":true},{"type":"vm"},{}]}`, []string{
			"/resources/0: expected container_id or image",
			"/resources/1/container_id: missing, but required",
			"/resources/2/sha256: missing, but required",
			"/resources/3/trusted: expected only in a devcontainer-file",
			`/resources/4/type: "vm": expected one of ["container-instance","devcontainer-instance","devcontainer-file"]`,
			"/resources/5/type: missing, but required"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, faultsOf(t, c.schema, c.document)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
