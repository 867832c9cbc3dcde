package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// faultsOf loads one file and returns its faults without the file's name.
func faultsOf(t *testing.T, text string) []string {
	t.Helper()
	dir := writeFiles(t, map[string]string{"f.yaml": text})
	s, faults, err := LoadDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.List()) > 0 {
		t.Errorf("a bad entry was taken: %v", s.List())
	}
	var lines []string
	for _, f := range faultLines(dir, faults) {
		lines = append(lines, strings.TrimPrefix(f, "f.yaml:"))
	}
	return lines
}

type faultCase struct {
	name, text string
	want       []string // line: reason
}

func runFaultCases(t *testing.T, cases []faultCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, faultsOf(t, tt.text)); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFaultsOfDocuments(t *testing.T) {
	unsupported := "anchors, aliases, merge keys, tags, directives and complex keys are not supported, write the value out"
	runFaultCases(t, []faultCase{
		{"kind", "kind: Tol\nname: a\n", []string{`1: /kind: "Tol": expected Tool or Project`}},
		{"no kind", "\n\nname: a\n", []string{"3: /kind: missing, but required: Tool or Project"}},
		{"list", "# x\n- a\n", []string{"2: expected one tool or project: an object with kind"}},
		{"text", "hello\n", []string{"1: expected one tool or project: an object with kind"}},
		{"missing bracket", "kind: Tool\nname: a\ncommand: [a\nx: 1\n", []string{"4: invalid YAML: ',' or ']' must be specified"}},
		{"tab", "kind: Tool\n\tname: a\n", []string{"2: invalid YAML: found character '\t' that cannot start any token"}},
		{"anchor", "kind: Tool\nname: &x a\ncommand: [*x]\n", []string{"2: &: " + unsupported}},
		{"tag", "kind: Tool\nname: !!str a\n", []string{"2: !!str: " + unsupported}},
		{"merge", "kind: Tool\nname: a\n<<: {command: [a]}\n", []string{"3: <<: " + unsupported}},
		{"complex key", "? [a, b]\n: c\n", []string{"1: ?: " + unsupported}},
		{"directive", "%YAML 1.2\n---\n# nothing else\n", []string{"1: %: " + unsupported}},
		{"UTF-8", "kind: Tool\nname: \xff\n", []string{"1: document is not valid UTF-8"}},
		{"brackets", strings.Repeat("[", 100_000), []string{"1: nested more than 64 levels deep"}},
		{"dashes", "a:\n" + strings.Repeat("- ", 100), []string{"2: nested more than 64 levels deep"}},
		{"tokens", "a: [" + strings.Repeat("b,", 60_000), []string{"1: document of more than 100000 tokens"}},
		{"size", "a: " + strings.Repeat("b", maxDocument), []string{"1: document of 262147 bytes: expected at most 262144"}},
		{"after the end", "a: b\n...\nc: d\n", []string{"3: more after the end of the document: expected --- before it"}},
		{"every document for itself", "kind: Tol\n---\n- a\n--- # c\nkind: Tool\nname: [\n", []string{
			`1: /kind: "Tol": expected Tool or Project`,
			"3: expected one tool or project: an object with kind",
			"6: invalid YAML: sequence end token ']' not found",
		}},
		{"NUL", "kind: Tool\nname: a\ncommand: [\"a\\0b\"]\ndescription: \"\\0\"\nenv:\n  OK: 5\n  \"N\\0\": a\n", []string{
			`3: tool "a": /command/0: "a\u0000b": expected a string without NUL`,
			`4: tool "a": /description: "\u0000": expected a string without NUL`,
			`5: tool "a": /env: "N\u0000": expected a member name without NUL`,
			`6: tool "a": /env/OK: is number, expected a string without NUL`,
			"7: tool \"a\": /env/N\uFFFD: expected a name of A-Z a-z 0-9 _ that does not begin with a digit",
		}},
	})
}

func TestFaultsOfTools(t *testing.T) {
	runFaultCases(t, []faultCase{
		{"both", "kind: Tool\nname: a\ncommand: [a]\ncode: print(1)\n", []string{`1: tool "a": expected exactly one of command and code`}},
		{"neither", "kind: Tool\nname: a\n", []string{`1: tool "a": expected exactly one of command and code`}},
		{"name and command", "kind: Tool\nname: 'a b'\ncommand: []\n", []string{
			`2: /name: "a b": expected 1 to 128 characters of A-Z a-z 0-9 _ -`,
			"3: /command: expected an argv of at least one string"}},
		{"unknown members", "kind: Tool\nname: a\ncommand: [a]\ncomand: [b]\nEnabled: true\n", []string{
			`4: tool "a": /comand: unknown member`, `5: tool "a": /Enabled: unknown member`}},
		{"twice", "kind: Tool\nname: a\ncommand: [a]\ncommand: [b]\n", []string{`4: tool "a": /command: given more than once`}},
		{"mcp", "kind: Tool\nname: a\nsource: mcp\n", []string{`3: tool "a": /source: source "mcp" is not supported: expected custom`}},
		{"builtin", "kind: Tool\nname: a\nsource: builtin\ncode: x\n", []string{`3: tool "a": /source: source "builtin" is not supported: expected custom`}},
		{"other source", "kind: Tool\nname: a\nsource: foo\ncode: x\n", []string{
			`3: tool "a": /source: "foo": expected one of ["custom","builtin","mcp","agent_skill","wrapped"]`}},
		{"limits", "kind: Tool\nname: a\ncommand: [a]\nlimits:\n  pids: many\n  timeout_seconds: 0\n  cpus: -1\n  memory_bytes: 0x10\n", []string{
			`5: tool "a": /limits/pids: is string, expected a whole number from 1 to 9007199254740991`,
			`6: tool "a": /limits/timeout_seconds: 0: expected seconds from 1e-9 to 1e9`,
			`7: tool "a": /limits/cpus: -1: expected cpus from 1e-9 to 1e9`,
			`8: tool "a": /limits/memory_bytes: number 0x10: expected plain decimal digits`}},
		{"exponent", "kind: Tool\nname: a\ncommand: [a]\nlimits:\n  open_files: 1e3\n", []string{
			`5: tool "a": /limits/open_files: 1e3: expected another value, such as plain digits for a whole number`}},
		{"huge number", "kind: Tool\nname: a\ncommand: [a]\nlimits: {pids: 1e2000000000}\n", []string{
			`4: tool "a": /limits/pids: number of 12 digits: too long or too large`}},
		{"schema", "kind: Tool\nname: a\ncommand: [a]\ninput_schema:\n  properties:\n    a: {minimum: x}\n    b:\n      minLength: -1\noutput_schema:\n  $ref: other\n", []string{
			`6: tool "a": /input_schema/properties/a/minimum: is string, expected number`,
			`8: tool "a": /input_schema/properties/b/minLength: -1: expected at least 0`,
			`10: tool "a": /output_schema/$ref: refers to "/other": schemas are never loaded from elsewhere`}},
		{"no schema", "kind: Tool\nname: a\ncommand: [a]\ninput_schema: 5\n", []string{`4: tool "a": /input_schema: is number, expected a JSON Schema`}},
		{"environments", "kind: Tool\nname: a\ncommand: [a]\nenvironments: []\ntool_env: moon\nisolation: some\n", []string{
			`4: tool "a": /environments: empty: expected host or container; to switch the tool off say enabled: false`,
			`5: tool "a": /tool_env: "moon": expected host or container, in any letter case, or the empty string`,
			`6: tool "a": /isolation: "some": expected full, reduced or none`}},
		{"after a long text", "kind: Tool\nname: a\ncode: |\n  print(1)\n\n\nenabled: maybe\ndescription: >\n  a\n  b\nidempotent: 3\n", []string{
			`7: tool "a": /enabled: is string, expected boolean`, `11: tool "a": /idempotent: is number, expected boolean`}},
		{"after a quoted text", "kind: Tool\nname: a\ncode: \"a\n  b\n  c\"\nenabled: maybe\n", []string{`6: tool "a": /enabled: is string, expected boolean`}},
		{"blank code", "kind: Tool\nname: a\ncode: '  '\n", []string{`3: tool "a": /code: blank: expected Python source`}},
		{"no value", "kind: Tool\nname: a\ncommand: [a]\nenv:\nenv_from: [A-B]\n", []string{
			`4: tool "a": /env: is null, expected an object of environment variables`,
			`5: tool "a": /env_from/0: "A-B": expected a name of A-Z a-z 0-9 _ that does not begin with a digit`}},
	})
}

func TestFaultsOfProjects(t *testing.T) {
	root := func(path string) []string {
		return []string{`3: project "p": /host_sandbox_path: ` + path + `: expected an absolute path without NUL, not the root of all, or the empty string`}
	}
	runFaultCases(t, []faultCase{
		{"/", "kind: Project\nid: p\nhost_sandbox_path: /\n", root(`"/"`)},
		{"//", "kind: Project\nid: p\nhost_sandbox_path: //\n", root(`"//"`)},
		{"relative", "kind: Project\nid: p\nhost_sandbox_path: srv/x\n", root(`"srv/x"`)},
		{"NUL", "kind: Project\nid: p\nhost_sandbox_path: \"/srv/\\0\"\n", root(`"/srv/\u0000"`)},
		{"dots", "kind: Project\nid: p\nhost_sandbox_path: /srv/../..\n", []string{
			`3: project "p": /host_sandbox_path: "/srv/../..": expected an absolute, clean path that is not the root of all`}},
		{"two slashes", "kind: Project\nid: p\nhost_sandbox_path: //srv\n", []string{
			`3: project "p": /host_sandbox_path: "//srv": expected an absolute, clean path that is not the root of all`}},
		{"protect", "kind: Project\nid: p\nprotect:\n- /etc\n- ../x\n- .\n- a/../b\n- ''\n- a/\n", []string{
			`4: project "p": /protect/0: "/etc": expected a relative path without NUL and ..`,
			`5: project "p": /protect/1: expected a relative path without NUL and ..`,
			`6: project "p": /protect/2: ".": expected a clean path below the project's root`,
			`7: project "p": /protect/3: expected a relative path without NUL and ..`,
			`8: project "p": /protect/4: "": expected a relative path without NUL and ..`,
			`9: project "p": /protect/5: "a/": expected a clean path below the project's root`}},
		{"allow", "kind: Project\nid: p\nexecution_environment: moon\nallow:\n  environments: [host, mars]\n  tools: ['a b']\n  inline: {writes: 1}\n  pool: [x]\n", []string{
			`3: project "p": /execution_environment: "moon": expected host or container, in any letter case, or the empty string`,
			`5: project "p": /allow/environments/1: "mars": expected host or container, in any letter case`,
			`6: project "p": /allow/tools/0: "a b": expected a name of A-Z a-z 0-9 _ - or *`,
			`7: project "p": /allow/inline/writes: is number, expected boolean`,
			`8: project "p": /allow/pool: unknown member`}},
		{"limits", "kind: Project\nid: p\nmaximum: {concurrency: 0}\ndefaults: {concurrency: 3}\n", []string{
			`3: project "p": /maximum/concurrency: 0: expected a whole number from 1 to 1000000`,
			`4: project "p": /defaults/concurrency: unknown member`}},
		{"resources", `kind: Project
id: p
resources:
  - {type: container-instance}
  - type: vm
  - {type: devcontainer-file, path: ../x, sha256: zz}
  - {type: devcontainer-instance}
  - {type: container-instance, image: x, workspace_folder: /}
  - {type: container-instance, image: -x, workspace_folder: /w/../x, trusted: true}
`, []string{
			`4: project "p": /resources/0: expected container_id or image`,
			`5: project "p": /resources/1/type: "vm": expected one of ["container-instance","devcontainer-instance","devcontainer-file"]`,
			`6: project "p": /resources/2/path: expected a relative path without NUL and ..`,
			`6: project "p": /resources/2/sha256: "zz": expected 64 hexadecimal digits`,
			`7: project "p": /resources/3/container_id: missing, but required`,
			`8: project "p": /resources/4/workspace_folder: "/": expected an absolute path without NUL, not the root of all`,
			`9: project "p": /resources/5/image: "-x": expected an image reference`,
			`9: project "p": /resources/5/trusted: expected only in a devcontainer-file`,
			`9: project "p": /resources/5/workspace_folder: "/w/../x": expected an absolute, clean path that is not the root of all`}},
		{"name", "kind: Project\nname: p\n", []string{"1: /id: missing, but required", "2: /name: unknown member"}},
	})
}
