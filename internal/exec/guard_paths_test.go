package exec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/sandbox/safefile"
	"github.com/toolworker/toolworker/internal/tool"
)

// newRoot is a project directory with a file, links of every kind, and a
// neighbour whose name begins like its own.
func newRoot(t *testing.T) root {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "project-1")
	for _, d := range []string{"src/deep", "../project-10"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "src/main.py"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"inner": "src/deep", "absolute": dir + "/src", "out": "../project-10", "etc": "/etc", "host": "/",
		"dangling": "nowhere", "loop": "loop", "chain": "inner", "up": "src/../..",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	opened, err := safefile.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return root{Root: opened, given: dir}
}

func TestPathGuardOnTheHost(t *testing.T) {
	r := newRoot(t)
	guard := pathGuard{root: r}
	dir, sibling := r.given, filepath.Dir(r.given)+"/project-10"
	for _, allowed := range []string{
		"", ".", "src/main.py", "./src//main.py", "new/file", dir, dir + "/", dir + "/src/main.py", "/" + dir + "/src",
		"inner/file", "absolute/main.py", "chain", "dangling", "inner/../main.py", "inner/..", "src/../src",
		"...", "..hidden", "~/x", `C:\Windows`, `..\..\etc`, "\uff0e\uff0e/etc", "e\u0301", "%2e%2e/x",
		"file://" + dir + "/src/main.py", "FILE:" + dir + "/src", "file://localhost" + dir + "/a%20b", "file:src",
	} {
		if reason, err := guard.refusal(allowed); reason != "" || err != nil {
			t.Errorf("%q: refused: %s %v", allowed, reason, err)
		}
	}
	for _, refused := range []string{
		"/", "//", "/etc/passwd", "..", "../x", "src/../../x", sibling, sibling + "/x", dir + "0", filepath.Dir(dir),
		"out", "out/x", "etc/passwd", "host", "host/etc", "up", "loop", "loop/x", "inner/../../../x", "etc/../etc",
		dir + "/../project-10/x", dir + "/etc/passwd", strings.Repeat("a/", 3000),
		"file:///etc/passwd", "file:/etc/passwd", "file://" + dir + "/%2e%2e/project-10", "file://other" + dir + "/src",
		"file://" + dir + "/%zz", "file://" + dir + "/etc/passwd", "file://" + dir + "/src%2f..%2f..%2fproject-10",
		"file://" + dir + "/src?/../../project-10", "file:../x",
	} {
		reason, err := guard.refusal(refused)
		if reason == "" || err != nil {
			t.Errorf("%q: allowed, %v", refused, err)
		}
	}
	for _, nul := range []string{"\x00", "src/\x00", "file://" + dir + "/%00"} {
		if reason, _ := guard.refusal(nul); reason != holdsNUL {
			t.Errorf("%q: got %q", nul, reason)
		}
	}
}

func TestPathGuardInAContainer(t *testing.T) {
	r := newRoot(t)
	guard := pathGuard{root: r, workspace: "/workspace"}
	for _, allowed := range []string{
		"src", "", "/", "/etc/passwd", "/workspace/x", "/workspace/../etc", r.given + "/src", r.given + "0",
		"file:///etc/passwd", "file://" + r.given + "/src",
	} {
		if reason, err := guard.refusal(allowed); reason != "" || err != nil {
			t.Errorf("%q: refused: %s %v", allowed, reason, err)
		}
	}
	for _, refused := range []string{
		"..", "src/../../x", "etc/passwd", r.given + "/etc/passwd", r.given + "/../x", r.given + "/out", "file://" + r.given + "/%2e%2e",
	} {
		if reason, _ := guard.refusal(refused); reason == "" {
			t.Errorf("%q: allowed", refused)
		}
	}
}

func TestEachPathFindsPathKeysAtAnyDepth(t *testing.T) {
	input := json.RawMessage(`{
		"path": "1", "config_path": ["2", 7, "3", ["not"], {"path": "4", "x": "not"}, "5"], "log_file": "6",
		"Path": "not", "paths": ["not"], "file": "not", "pathname": "not", "_path": "7", "path_": "not",
		"a": [[{"b": {"in_file": "8"}}], {"path": {"path": "9", "other": "not"}}, "not"],
		"x_path": {"list": ["not"]}, "y_path": null, "z_path": 5, "q_path": [], "w": "not", "last_file": "10"}`)
	var got []string
	if err := eachPath(input, func(pointer, p string) { got = append(got, pointer+"="+p) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/input/path=1", "/input/config_path/0=2", "/input/config_path/2=3", "/input/config_path/4/path=4", "/input/config_path/5=5",
		"/input/log_file=6", "/input/_path=7", "/input/a/0/0/b/in_file=8", "/input/a/1/path/path=9", "/input/last_file=10",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, scalar := range []string{"{}", "[]", `"path"`, "null"} {
		if err := eachPath(json.RawMessage(scalar), func(pointer, p string) { t.Errorf("%s: found %s", scalar, p) }); err != nil {
			t.Errorf("%s: %v", scalar, err)
		}
	}
}

func TestPathGuardNamesEveryFaultAndNoSecret(t *testing.T) {
	r := newRoot(t)
	guard := pathGuard{root: r}
	input := json.RawMessage(`{"path": "etc/passwd", "a": [{"b_path": "ok"}, {"b_path": "../x"}]}`)
	e := errorOf(t, guard.check(input))
	if e.Code != tool.PathEscape || !strings.Contains(e.Message, `/input/path: "etc/passwd"`) || !strings.Contains(e.Message, `/input/a/1/b_path: "../x"`) {
		t.Errorf("got %v", e)
	}
	if strings.Contains(e.Message, "/etc\"") || strings.Contains(e.Message, r.given) {
		t.Errorf("the message tells where a link leads: %v", e)
	}
	if e := errorOf(t, guard.check(json.RawMessage(`{"path": "../x", "b_file": "a\u0000b"}`))); e.Code != tool.InvalidRequest || !strings.Contains(e.Message, "/input/b_file") {
		t.Errorf("NUL: got %v", e)
	}
	many, _ := json.Marshal(map[string][]string{"path": slices.Repeat([]string{"/etc"}, 50)})
	if e := errorOf(t, guard.check(many)); !strings.Contains(e.Message, "and 40 more") {
		t.Errorf("many: got %v", e)
	}
	long := fmt.Sprintf(`{"path": %q}`, "/"+strings.Repeat("é", 2000))
	if e := errorOf(t, guard.check(json.RawMessage(long))); len(e.Message) > 400 {
		t.Errorf("long: got %d bytes", len(e.Message))
	}
	if err := guard.check(json.RawMessage(`{"path": "src", "list": [1, "x"]}`)); err != nil {
		t.Errorf("good input: got %v", err)
	}
}

func FuzzPathGuard(f *testing.F) {
	for _, p := range []string{"src/main.py", "../x", "etc/passwd", "inner/../../..", "file:///etc", "file:/%2e%2e", "up/../x", "//", "host"} {
		f.Add(p)
	}
	base, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	dir := filepath.Join(base, "p")
	if err := os.MkdirAll(dir+"/src/deep", 0o755); err != nil {
		f.Fatal(err)
	}
	for name, target := range map[string]string{"inner": "src/deep", "out": "..", "etc": "/etc", "up": "src/../.."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	opened, err := safefile.OpenRoot(dir)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = opened.Close() })
	guard := pathGuard{root: root{Root: opened, given: dir}}
	f.Fuzz(func(t *testing.T, p string) {
		reason, err := guard.refusal(p)
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		if reason != "" || strings.HasPrefix(strings.ToLower(p), "file:") {
			return
		}
		// What is allowed and exists must be inside, as the kernel sees it.
		if !filepath.IsAbs(p) {
			p = dir + "/" + p
		}
		if real, err := filepath.EvalSymlinks(p); err == nil && !below(real, dir) {
			t.Fatalf("%q is allowed and leads to %q", p, real)
		}
	})
}
