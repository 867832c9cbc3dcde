package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

// checkDocument says what holds for every document, whatever its text.
func checkDocument(t *testing.T, text string, doc *document) {
	t.Helper()
	lines := strings.Count(text, "\n") + strings.Count(text, "\r") + 1 // a lone CR breaks lines too
	if (doc.entry == nil) == (len(doc.faults) == 0) {
		t.Fatalf("entry %v, faults %v", doc.entry, doc.faults)
	}
	for _, f := range doc.faults {
		if strings.HasPrefix(f.reason, "cannot be read: ") {
			t.Fatalf("a panic: %s", f.reason)
		}
		if f.reason == "" || f.line < 0 || f.line > lines {
			t.Fatalf("fault %+v of %d lines", f, lines)
		}
	}
	if e := doc.entry; e != nil {
		if !tool.ValidName(e.name) || e.name != doc.name || e.kind != doc.kind {
			t.Fatalf("name %q", e.name)
		}
		checkEntry(t, e)
	}
}

// checkEntry says what nobody who uses an entry checks again.
func checkEntry(t *testing.T, e *entry) {
	t.Helper()
	if d := e.tool; d != nil {
		if strings.ContainsRune(strings.Join(d.Command, "")+d.Code+d.Description, 0) {
			t.Fatalf("NUL in %+v", d)
		}
		if (len(d.Command) > 0) == (d.Code != "") || d.Source != "custom" || d.Limits.TimeoutSeconds < 0 || d.Concurrency < 0 {
			t.Fatalf("tool %+v", d)
		}
	}
	if p := e.project; p != nil {
		root := p.HostSandboxPath
		if strings.ContainsRune(root+strings.Join(p.Protect, ""), 0) {
			t.Fatalf("NUL in %+v", p)
		}
		if root != "" && (!filepath.IsAbs(root) || filepath.Clean(root) != root || root == "/") {
			t.Fatalf("root %q", root)
		}
		for _, rel := range p.Protect {
			if !filepath.IsLocal(rel) || rel == "." {
				t.Fatalf("protect %q", rel)
			}
		}
		for _, r := range p.Resources {
			if r.WorkspaceFolder == "" || r.WorkspaceFolder == "/" || strings.HasPrefix(r.ContainerID+r.Image, "-") {
				t.Fatalf("resource %+v", r)
			}
		}
	}
}

// FuzzReadDocument reads YAML, then what it became from the bucket.
func FuzzReadDocument(f *testing.F) {
	for _, c := range split([]byte(wholeSample)) {
		f.Add(c.text)
	}
	samples, err := filepath.Glob("../../deploy/catalog/*.yaml")
	if err != nil || len(samples) == 0 {
		f.Fatal("no samples", err)
	}
	for _, name := range samples {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, c := range split(data) {
			f.Add(c.text)
		}
	}
	for _, text := range []string{
		"kind: Tool\nname: a\ncommand: [a\n", "- - - -", "? a\n: b", "%YAML 1.2\n", "a: &x b\nc: *x", "a: |\n b\n...\nc: d", "\"\\u0000\": 1",
		"kind: Tool\nname: a\ncode: |2\n  x\nlimits: {pids: 1e999999999}", "kind: Project\nid: p\nhost_sandbox_path: //x/../..\n", "a: 'b''\nc", "{a: [b, {c: d}]}: e", "\t", "---\n---", "kind: Tool\nname: 0x1f\n",
		"kind: Tool\nname: a\ncommand: [a]\ninput_schema: {$ref: '#/properties/a', properties: {a: {$ref: '#'}}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc := readDocument("/catalogue", text)
		if doc == nil {
			return
		}
		checkDocument(t, text, doc)
		if doc.entry == nil {
			return
		}
		e := doc.entry
		again := readRecord(keyFor(e.kind, e.name), e.json)
		if again.entry == nil {
			t.Fatalf("%s is refused from the bucket: %v", e.json, again.faults)
		}
		if again.entry.tool != nil {
			again.entry.tool.Dir = e.tool.Dir
		}
		if diff := cmp.Diff(e.tool, again.entry.tool); diff != "" {
			t.Fatalf("the bucket's form differs:\n%s", diff)
		}
		if diff := cmp.Diff(e.project, again.entry.project); diff != "" {
			t.Fatalf("the bucket's form differs:\n%s", diff)
		}
	})
}

// FuzzReadRecord reads whatever somebody could put into the bucket.
func FuzzReadRecord(f *testing.F) {
	f.Add("tool.a", []byte(`{"kind":"Tool","name":"a","command":["a"],"input_schema":{"type":"object"}}`))
	f.Add("project.p", []byte(`{"kind":"Project","id":"p","host_sandbox_path":"/srv/p","resources":[{"type":"container-instance","image":"x"}]}`))
	f.Add("tool.a", []byte(`{"kind":"Tool","name":"a","code":"x","limits":{"timeout_seconds":1e-400}}`))
	f.Add("tool.", []byte(`null`))
	f.Add("tool.a", []byte("\xff"))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		if _, ok := refOf(key); !ok {
			return
		}
		checkDocument(t, "", readRecord(key, value))
	})
}

// FuzzSplit: every byte is in one document, and every document is where it
// says it is.
func FuzzSplit(f *testing.F) {
	for _, text := range []string{"", "---", "a\n---\nb", "---\n---\r\n--- c\n----\n---x\n", " ---\n", "\xef\xbb\xbf---\n", "a\n--- |\n b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all strings.Builder
		for i, c := range split([]byte(text)) {
			if want := strings.Count(all.String(), "\n") + 1; c.line != want {
				t.Fatalf("document %d is said to begin in line %d, it is %d", i, c.line, want)
			}
			if c.text == "" || i > 0 && !strings.HasPrefix(c.text, "---") {
				t.Fatalf("document %d is %q", i, c.text)
			}
			all.WriteString(c.text)
		}
		if all.String() != strings.TrimPrefix(text, "\xef\xbb\xbf") {
			t.Fatal("something was lost")
		}
	})
}
