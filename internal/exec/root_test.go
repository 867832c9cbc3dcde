package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestSandboxRootOfAProject(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"link": dir, "slash": "/", "tofile": base + "/file"} {
		if err := os.Symlink(target, filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	p := &pipeline{}
	for given, real := range map[string]string{dir: dir, filepath.Join(base, "link"): dir} {
		r, err := p.sandboxRoot(&tool.Project{ID: "p", HostSandboxPath: given})
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		if r.given != given || r.Path() != real {
			t.Errorf("%s: got %q, %q", given, r.given, r.Path())
		}
		_ = r.Close()
	}
	for _, bad := range []string{"/", "//", "relative", base + "/", base + "/none", base + "/file", base + "/file/x", base + "/tofile"} {
		_, err := p.sandboxRoot(&tool.Project{ID: "p", HostSandboxPath: bad})
		if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable {
			t.Errorf("%q: got %v", bad, e)
		}
	}
	if r, err := p.sandboxRoot(&tool.Project{ID: "p", HostSandboxPath: base + "/slash"}); err == nil {
		t.Errorf("a link to /: got %q", r.Path())
	}
}

func TestDefaultSandboxRoot(t *testing.T) {
	base := filepath.Join(t.TempDir(), "sandbox")
	p := &pipeline{Config{DefaultRoot: base}}
	for range 2 { // made, then found
		r, err := p.sandboxRoot(&tool.Project{ID: "project-1"})
		if err != nil {
			t.Fatal(err)
		}
		if r.given != base+"/project-1" {
			t.Errorf("got %q", r.given)
		}
		_ = r.Close()
	}
	for _, dir := range []string{base, base + "/project-1"} {
		if info, err := os.Lstat(dir); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, base+"/linked"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(base+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"linked", "file", "..", "a/b"} {
		_, err := p.sandboxRoot(&tool.Project{ID: id})
		if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable || !strings.Contains(e.Message, "host_sandbox_path") {
			t.Errorf("%s: got %v", id, e)
		}
	}
	if left, _ := os.ReadDir(elsewhere); len(left) > 0 {
		t.Errorf("something was made behind the link: %v", left)
	}
	link := filepath.Join(t.TempDir(), "sandbox")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	_, err := (&pipeline{Config{DefaultRoot: link}}).sandboxRoot(&tool.Project{ID: "project-1"})
	if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable {
		t.Errorf("the base is a link: got %v", e)
	}
}

func TestDefaultSandboxRootOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a directory away")
	}
	base := filepath.Join(t.TempDir(), "sandbox")
	if err := os.Mkdir(base, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(base, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	_, err := (&pipeline{Config{DefaultRoot: base}}).sandboxRoot(&tool.Project{ID: "p"})
	if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable || !strings.Contains(e.Message, "another user") {
		t.Errorf("got %v", e)
	}
}
