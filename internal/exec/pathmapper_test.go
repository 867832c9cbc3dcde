package exec

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func newMapper(t testing.TB) *PathMapper {
	t.Helper()
	m, err := NewPathMapper("/srv/p/project-1", "/workspace")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestPathMapperRefusesRoots(t *testing.T) {
	for _, root := range []string{
		"", ".", "..", "/", "//", "///", "/.", "/..", "relative", "./x", "/srv/p/", "/srv//p", "//srv/p",
		"/srv/./p", "/srv/../p", "/srv/p/..", "/srv/p\x00", "\x00", "file:///srv/p", `C:\srv`,
	} {
		if _, err := NewPathMapper(root, "/workspace"); err == nil || !strings.Contains(err.Error(), "host root") {
			t.Errorf("host root %q: got %v", root, err)
		}
		if _, err := NewPathMapper("/srv/p", root); err == nil || !strings.Contains(err.Error(), "container root") {
			t.Errorf("container root %q: got %v", root, err)
		}
	}
}

func TestHostToContainer(t *testing.T) {
	m := newMapper(t)
	for in, want := range map[string]string{
		"/srv/p/project-1/src/main.py":                "/workspace/src/main.py",
		"/srv/p/project-1":                            "/workspace",
		"/srv/p/project-1/":                           "/workspace/",
		"/srv/p/project-1//a/./b":                     "/workspace//a/./b",
		"/srv/p/project-1/a/../b":                     "/workspace/a/../b",
		"/srv//p/./project-1/a":                       "/workspace/a",
		"//srv/p/project-1/a":                         "/workspace/a",
		"/srv/q/../p/project-1/a":                     "/workspace/a",
		"/srv/p/project-1/../project-1/a":             "/workspace/a",
		"/srv/p/project-10/x":                         "/srv/p/project-10/x",
		"/srv/p/project-1x":                           "/srv/p/project-1x",
		"/srv/p/project-1/../secret":                  "/srv/p/project-1/../secret",
		"/srv/p/project-1/a/../../secret":             "/srv/p/project-1/a/../../secret",
		"/srv/p":                                      "/srv/p",
		"/usr/lib/libc.so":                            "/usr/lib/libc.so",
		"":                                            "",
		".":                                           ".",
		"/":                                           "/",
		"//":                                          "//",
		"srv/p/project-1/x":                           "srv/p/project-1/x",
		`\srv\p\project-1\x`:                          `\srv\p\project-1\x`,
		`C:\srv\p\project-1`:                          `C:\srv\p\project-1`,
		`/srv/p/project-1\..\..`:                      `/srv/p/project-1\..\..`,
		"/srv/p/project-1/\uff0e\uff0e/x":             "/workspace/\uff0e\uff0e/x",
		"/srv/p/project-1/e\u0301":                    "/workspace/e\u0301",
		"/srv/p/project-1/..hidden":                   "/workspace/..hidden",
		"file:///srv/p/project-1/a%20b":               "file:///workspace/a%20b",
		"file:/srv/p/project-1/x":                     "file:/workspace/x",
		"FILE://LocalHost/srv/p/project-1/x":          "FILE://LocalHost/workspace/x",
		"file:///srv/p/%70roject-1/x y":               "file:///workspace/x%20y",
		"file:///srv/p/project-1/%2e%2e/x":            "file:///srv/p/project-1/%2e%2e/x",
		"file:///srv/p/project-1/%252e%252e/x":        "file:///workspace/%252e%252e/x",
		"file:///srv/p/project-1/a%2f..%2f..%2fx":     "file:///srv/p/project-1/a%2f..%2f..%2fx",
		"file://other/srv/p/project-1/x":              "file://other/srv/p/project-1/x",
		"file:///srv/p/project-1/%zz":                 "file:///srv/p/project-1/%zz",
		"file:///srv/p/project-10/x":                  "file:///srv/p/project-10/x",
		"file:srv/p/project-1/x":                      "file:srv/p/project-1/x",
		"https://example.com/srv/p/project-1/x":       "https://example.com/srv/p/project-1/x",
		"see /srv/p/project-1/x for more":             "see /srv/p/project-1/x for more",
		"/srv/p/project-1/" + strings.Repeat("x", 99): "/workspace/" + strings.Repeat("x", 99),
	} {
		got, err := m.HostToContainer(in)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestContainerToHost(t *testing.T) {
	m := newMapper(t)
	for in, want := range map[string]string{
		"/workspace/src/main.py":  "/srv/p/project-1/src/main.py",
		"/workspace":              "/srv/p/project-1",
		"/workspaces/x":           "/workspaces/x",
		"/workspace/../etc":       "/workspace/../etc",
		"file:///workspace/a%23b": "file:///srv/p/project-1/a%23b",
	} {
		got, err := m.ContainerToHost(in)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestPathMapperRefusesNULEverywhere(t *testing.T) {
	m := newMapper(t)
	for _, p := range []string{"\x00", "/usr\x00", "/srv/p/project-1/\x00", "file:///srv/p/project-1/%00"} {
		if got, err := m.HostToContainer(p); !errors.Is(err, ErrNUL) {
			t.Errorf("%q: got %q, %v", p, got, err)
		}
	}
	if got, err := m.ContainerToHost("/workspace/a\x00b"); !errors.Is(err, ErrNUL) {
		t.Errorf("got %q, %v", got, err)
	}
	_, err := m.HostToContainerJSON(json.RawMessage(`{"a": [{"b": "/srv/p/project-1/\u0000"}]}`))
	if !errors.Is(err, ErrNUL) || !strings.Contains(err.Error(), "/a/0/b") {
		t.Errorf("got %v, want ErrNUL at /a/0/b", err)
	}
	if got, err := m.HostToContainerJSON(json.RawMessage(`"text with \u0000"`)); err != nil || string(got) != `"text with \u0000"` {
		t.Errorf("text that is no path: got %s, %v", got, err)
	}
}

func TestPathMapperJSON(t *testing.T) {
	m := newMapper(t)
	in := json.RawMessage(` {"z": "/srv/p/project-1/x", "n": 9007199254740993, "f": 1.50e+00, "a": [["/srv/p/project-1", {"/srv/p/project-1/key":
		[true, null, "\u002fsrv\/p\/project-1\/\u00e9", "\u00e9\/"]}]], "count": 5, "out": "/srv/p/project-10/x"} `)
	want := `{"z":"/workspace/x","n":9007199254740993,"f":1.50e+00,"a":[["/workspace",{"/srv/p/project-1/key":` +
		`[true,null,"/workspace/é","\u00e9\/"]}]],"count":5,"out":"/srv/p/project-10/x"}`
	got, err := m.HostToContainerJSON(in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	back, err := m.ContainerToHostJSON(got)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(back), `"/srv/p/project-1/é"`) || !strings.Contains(string(back), "9007199254740993") {
		t.Errorf("mapped back: %s", back)
	}
	for _, bad := range []string{"", " ", "{", `{"a":1}x`, `{"a":1} {}`, `{"a":1,"a":2}`, "NaN", `"\ud800"`} {
		if got, err := m.HostToContainerJSON(json.RawMessage(bad)); err == nil {
			t.Errorf("%q: got %s, want an error", bad, got)
		}
	}
}

func TestPathMapperStreamIsLenient(t *testing.T) {
	var out strings.Builder
	err := newMapper(t).ContainerToHostStream(&out, strings.NewReader(`["/workspace/a", "/workspace/\u0000"]`))
	if want := `["/srv/p/project-1/a","/workspace/\u0000"]`; err != nil || strings.TrimSpace(out.String()) != want {
		t.Errorf("got %s, %v, want %s", out.String(), err, want)
	}
}

func TestPathMapperValueLeavesItsArgumentAlone(t *testing.T) {
	m := newMapper(t)
	in := map[string]any{"path": "/srv/p/project-1/a", "list": []any{"/srv/p/project-1", 5, []string{"/srv/p/project-1/b"}}, "nil": nil}
	got, err := m.HostToContainerValue(in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"path": "/workspace/a", "list": []any{"/workspace", 5, []string{"/workspace/b"}}, "nil": nil}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if in["path"] != "/srv/p/project-1/a" {
		t.Errorf("the argument was changed: %v", in)
	}
	if _, err := m.ContainerToHostValue([]any{map[string]any{"x": "/workspace/\x00"}}); !errors.Is(err, ErrNUL) {
		t.Errorf("got %v, want ErrNUL", err)
	}
}

// roots draws a root in its shortest form, with elements that invite mistakes.
func roots() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		elements := rapid.SliceOfN(rapid.SampledFrom([]string{"srv", "p", "project-1", "a b", "é", "100%", "%41", "..x", "w"}), 1, 4).Draw(t, "elements")
		return "/" + strings.Join(elements, "/")
	})
}

func TestPathMapperRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, err := NewPathMapper(roots().Draw(t, "host"), roots().Draw(t, "container"))
		if err != nil {
			t.Fatal(err)
		}
		rest := rapid.SliceOf(rapid.OneOf(rapid.SampledFrom([]string{"", ".", "..", "a", "%2e%2e"}), rapid.StringN(1, 8, -1))).Draw(t, "rest")
		p := strings.ReplaceAll(strings.Join(append([]string{m.host}, rest...), "/"), "\x00", "")
		mapped, err := m.HostToContainer(p)
		if err != nil {
			t.Fatal(err)
		}
		if !below(path.Clean(p), m.host) {
			if mapped != p {
				t.Fatalf("%q is outside and became %q", p, mapped)
			}
			return
		}
		if !below(path.Clean(mapped), m.container) {
			t.Fatalf("%q became %q, which is outside", p, mapped)
		}
		back, err := m.ContainerToHost(mapped)
		if err != nil {
			t.Fatal(err)
		}
		if path.Clean(back) != path.Clean(p) {
			t.Fatalf("%q became %q, then %q", p, mapped, back)
		}
		if !climbs(strings.TrimPrefix(p, m.host)) && back != p {
			t.Fatalf("%q was not kept as written: %q", p, back)
		}
	})
}

// TestPathMapperFormsAgree maps the same value as JSON text and as Go values.
func TestPathMapperFormsAgree(t *testing.T) {
	m := newMapper(t)
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }),
		rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }),
		rapid.Map(rapid.SampledFrom([]string{"/srv/p/project-1", "/srv/p/project-1/a", "/srv/p/project-10", "file:///srv/p/project-1/x", "é", ""}),
			func(s string) any { return s }))
	var tree func(depth int) *rapid.Generator[any]
	tree = func(depth int) *rapid.Generator[any] {
		if depth == 0 {
			return leaf
		}
		return rapid.OneOf(leaf,
			rapid.Map(rapid.SliceOfN(tree(depth-1), 0, 3), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"path", "a", "/srv/p/project-1"}), tree(depth-1), 0, 3), func(v map[string]any) any { return v }))
	}
	rapid.Check(t, func(t *rapid.T) {
		value := tree(4).Draw(t, "value")
		doc, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		mappedDoc, err := m.HostToContainerJSON(doc)
		if err != nil {
			t.Fatal(err)
		}
		mappedValue, err := m.HostToContainerValue(value)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(mappedDoc, &got); err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(mappedValue)
		if again, _ := json.Marshal(got); string(again) != string(want) {
			t.Fatalf("text %s, values %s", again, want)
		}
	})
}

func FuzzPathMapper(f *testing.F) {
	for _, p := range []string{
		"/srv/p/project-1/src", "/srv/p/project-10", "/srv/p/project-1/../x", "//srv/p/project-1", "file:///srv/p/project-1/%2e%2e",
		"file:/srv/p/project-1/a%2fb", "file://localhost", "file:", "", "/", "/srv/p/project-1/\x00", "/srv/p/../p/project-1/../../x",
	} {
		f.Add(p)
	}
	m := newMapper(f)
	f.Fuzz(func(t *testing.T, p string) {
		mapped, err := m.HostToContainer(p)
		if err != nil {
			if !errors.Is(err, ErrNUL) {
				t.Fatalf("%q: %v", p, err)
			}
			return
		}
		if mapped == p {
			return
		}
		where := func(s string) string {
			if u, ok := parseFileURL(s); ok {
				s = u.decoded
			}
			return path.Clean(s)
		}
		if !below(where(p), m.host) || !below(where(mapped), m.container) {
			t.Fatalf("%q became %q", p, mapped)
		}
		if strings.TrimPrefix(where(p), m.host) != strings.TrimPrefix(where(mapped), m.container) {
			t.Fatalf("%q became %q: not the same place", p, mapped)
		}
		back, err := m.ContainerToHost(mapped)
		if err != nil || where(back) != where(p) {
			t.Fatalf("%q became %q, then %q, %v", p, mapped, back, err)
		}
	})
}

func FuzzPathMapperJSON(f *testing.F) {
	for _, doc := range []string{`{"path":"/srv/p/project-1/x","n":[1e400,-0.0,9007199254740993]}`, `"\u002fsrv"`, `[[],{"a":null}]`, `{"a":1,"a":2}`, `[`} {
		f.Add([]byte(doc))
	}
	m := newMapper(f)
	f.Fuzz(func(t *testing.T, doc []byte) {
		mapped, err := m.HostToContainerJSON(doc)
		if err != nil {
			return
		}
		if !json.Valid(mapped) {
			t.Fatalf("%q became %q, which is no JSON", doc, mapped)
		}
		if again, err := m.HostToContainerJSON(mapped); err != nil || string(again) != string(mapped) {
			t.Fatalf("%q: mapped twice it is %q, %v", mapped, again, err)
		}
	})
}

func ExamplePathMapper() {
	mapper, err := NewPathMapper("/tmp/sandbox/project-1", "/workspace")
	if err != nil {
		panic(err)
	}
	inside, _ := mapper.HostToContainer("/tmp/sandbox/project-1/src/main.py")
	outside, _ := mapper.HostToContainer("/usr/lib/libc.so")
	input, _ := mapper.HostToContainerJSON(json.RawMessage(`{"path": "/tmp/sandbox/project-1/src/main.py", "count": 5}`))
	fmt.Println(inside)
	fmt.Println(outside)
	fmt.Println(string(input))
	// Output:
	// /workspace/src/main.py
	// /usr/lib/libc.so
	// {"path":"/workspace/src/main.py","count":5}
}
