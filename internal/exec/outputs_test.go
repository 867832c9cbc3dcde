package exec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestResolveOutputs(t *testing.T) {
	r := newRoot(t)
	project := &tool.Project{ID: "p", Protect: []string{".git/hooks", ".devcontainer"}}
	request := &tool.Request{Outputs: []string{
		r.given + "/build/output.txt", "/workspace/build/output.txt", "build/output.txt", "./build//output.txt", "inner/x",
	}}
	host, err := resolveOutputs(request, project, r, "/workspace", false)
	if err != nil {
		t.Fatal(err)
	}
	at := func(rel, container string) Output {
		return Output{HostPath: r.Path() + "/" + rel, ContainerPath: container}
	}
	build := at("build/output.txt", "")
	if diff := cmp.Diff([]Output{build, build, build, build, at("inner/x", "")}, host); diff != "" {
		t.Error(diff)
	}
	request.Outputs = []string{"/workspace/a", r.given + "/b"}
	inside, err := resolveOutputs(request, project, r, "/workspace", true)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Output{at("a", "/workspace/a"), at("b", "/workspace/b")}, inside); diff != "" {
		t.Error(diff)
	}
	for code, names := range map[tool.Code][]string{
		tool.PathEscape: {
			"", ".", "/", "//", "..", "../x", "a/../../x", "/etc/passwd", r.given, r.given + "/", "/workspace", "/workspace/../x",
			r.given + "0/x", "/workspaces/x", "out/x", "etc/passwd", "loop", "src/..", r.given + "/../x",
		},
		tool.InvalidRequest: {"\x00", "a\x00b"},
		tool.Forbidden:      {".git/hooks", ".git/hooks/pre-commit", ".git", "/workspace/.devcontainer/x", "src/../.devcontainer"},
	} {
		for _, name := range names {
			_, err := resolveOutputs(&tool.Request{Outputs: []string{"fine", name}}, project, r, "/workspace", false)
			if e := errorOf(t, err); e.Code != code {
				t.Errorf("%q: got %v, want %s", name, e, code)
			} else if code == tool.PathEscape && !strings.Contains(e.Message, "/outputs/1") {
				t.Errorf("%q: the message names no member: %v", name, e)
			}
		}
	}
}

func TestOutputsBehindProtectedLinks(t *testing.T) {
	r := newRoot(t)
	if err := errors.Join(os.MkdirAll(filepath.Join(r.Path(), "git/hooks"), 0o755), os.Symlink("git", filepath.Join(r.Path(), ".git"))); err != nil {
		t.Fatal(err)
	}
	project := &tool.Project{ID: "p", Protect: []string{".git/hooks"}}
	for _, name := range []string{".git/hooks/x", "git/hooks/x", ".git", "/workspace/git/hooks"} {
		_, err := resolveOutputs(&tool.Request{Outputs: []string{name}}, project, r, "/workspace", true)
		if e := errorOf(t, err); e.Code != tool.Forbidden {
			t.Errorf("%q: got %v, want %s", name, e, tool.Forbidden)
		}
	}
	if len(project.Protect) != 1 {
		t.Errorf("the catalogue's project was changed: %v", project.Protect)
	}
}
