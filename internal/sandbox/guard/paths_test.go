package guard

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func link(t *testing.T, dir, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestPathsFollowLinks(t *testing.T) {
	dir := project(t, map[string]string{"real/hooks/a": "x", "sub/f": "x", "f": "x"})
	link(t, dir, "real", ".git")
	link(t, dir, filepath.Join(dir, "real/hooks"), "absolute")
	link(t, dir, "../sub/../real", "sub/up")
	link(t, dir, "/etc", "out")
	link(t, dir, "../x", "above")
	link(t, dir, "loop2", "loop1")
	link(t, dir, "loop1", "loop2")
	link(t, dir, "nowhere/x", "dangling")
	link(t, dir, ".", "self")
	for p, want := range map[string][]string{
		"f":                {"f"},
		"real/hooks":       {"real/hooks"},
		"missing/x":        {"missing/x"},
		"f/x":              {"f/x"},
		".git":             {".git", "real"},
		".git/hooks":       {".git", "real/hooks"},
		".git/missing/x":   {".git", "real/missing/x"},
		"absolute":         {"absolute", "real/hooks"},
		"sub/up/hooks/a":   {"sub/up", "real/hooks/a"},
		"out/passwd":       {"out"},
		"above":            {"above"},
		"loop1":            {"loop1", "loop2"},
		"dangling":         {"dangling", "nowhere/x"},
		"self":             {"self"},
		"self/real/hooks/": {"self", "real/hooks"},
	} {
		got, err := Paths(dir, []string{p})
		slices.Sort(got)
		got = slices.Compact(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: got %q, %v; want %q", p, got, err, want)
		}
	}
	if got, err := Paths(dir, nil); got != nil || err != nil {
		t.Errorf("of nothing: got %q, %v", got, err)
	}
	if _, err := Paths(dir+"/missing", []string{"f"}); err == nil {
		t.Error("a project that is not there has paths")
	}
}
