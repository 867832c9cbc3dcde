package guard

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// project makes a directory with files by name and content.
func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	return dir
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// listing gives every file and link with its content; a name that was set
// aside ends in "!".
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		parts := strings.Split(rel, "/")
		for i, part := range parts {
			if name, _, ok := strings.Cut(part, ".refused-"); ok {
				parts[i] = name + "!"
			}
		}
		rel = strings.Join(parts, "/")
		if d.Type()&fs.ModeSymlink != 0 {
			files[rel], err = os.Readlink(p)
			return err
		}
		b, err := os.ReadFile(p)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

var protected = []string{".devcontainer", ".git/hooks", ".git/config"}

func TestRestore(t *testing.T) {
	git := map[string]string{".git/config": "[core]", ".git/hooks/post-update": "#!", "f": "x"}
	for name, tc := range map[string]struct {
		before map[string]string
		mounts bool
		tool   func(t *testing.T, dir string)
		want   map[string]string
		aside  int
	}{
		"nothing was done": {git, false, func(*testing.T, string) {}, git, 0},
		"other files are the tool's": {git, false, func(t *testing.T, dir string) {
			write(t, dir, ".git/index", "i")
		}, map[string]string{".git/config": "[core]", ".git/hooks/post-update": "#!", "f": "x", ".git/index": "i"}, 0},
		"a repository was made": {map[string]string{"f": "x"}, true, func(t *testing.T, dir string) {
			write(t, dir, ".git/config", "evil")
			write(t, dir, ".git/hooks/pre-commit", "evil")
			write(t, dir, ".git/HEAD", "ref")
		}, map[string]string{"f": "x", ".git/HEAD": "ref", ".git/config!": "evil", ".git/hooks!/pre-commit": "evil"}, 2},
		"a link was made to one": {map[string]string{"f": "x"}, true, func(t *testing.T, dir string) {
			write(t, dir, "other/hooks/pre-commit", "evil")
			if err := os.Symlink("other", filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{"f": "x", "other/hooks/pre-commit": "evil", ".git!": "other"}, 1},
		"a file was made": {map[string]string{"f": "x"}, true, func(t *testing.T, dir string) {
			write(t, dir, ".devcontainer", "evil")
		}, map[string]string{"f": "x", ".devcontainer!": "evil"}, 1},
		"content was changed": {git, false, func(t *testing.T, dir string) {
			write(t, dir, ".git/config", "evil")
			write(t, dir, ".git/hooks/pre-commit", "evil")
		}, map[string]string{
			".git/config": "[core]", ".git/hooks/post-update": "#!", "f": "x",
			".git/config!": "evil", ".git/hooks!/pre-commit": "evil", ".git/hooks!/post-update": "#!",
		}, 2},
		"all was removed": {git, false, func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, git, 0},
		"a directory on the way was exchanged": {git, false, func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "git2")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("git2", filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{
			".git/config": "[core]", ".git/hooks/post-update": "#!", "f": "x",
			".git!": "git2", "git2/config": "[core]", "git2/hooks/post-update": "#!",
		}, 1},
		"a mode was changed": {git, false, func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, ".git/config"), 0o777); err != nil {
				t.Fatal(err)
			}
		}, map[string]string{".git/config": "[core]", ".git/hooks/post-update": "#!", "f": "x", ".git/config!": "[core]"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, tc.before)
			g, err := New(dir, protected, tc.mounts)
			if err != nil {
				t.Fatal(err)
			}
			tc.tool(t, dir)
			aside, err := g.Restore()
			if err != nil {
				t.Fatal(err)
			}
			if got := listing(t, dir); !same(got, tc.want) {
				t.Errorf("the project holds %v, want %v", got, tc.want)
			}
			if len(aside) != tc.aside {
				t.Errorf("set aside %v, want %d", aside, tc.aside)
			}
		})
	}
}

func TestModesAndLinksComeBack(t *testing.T) {
	dir := project(t, map[string]string{".git/hooks/a": "x"})
	hooks := filepath.Join(dir, ".git/hooks")
	for _, err := range []error{
		os.Symlink("a", filepath.Join(hooks, "link")), os.Chmod(filepath.Join(hooks, "a"), 0o751), os.Chmod(hooks, 0o550),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	g, err := New(dir, protected, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(hooks, 0o755), os.RemoveAll(hooks)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Restore(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(hooks, 0o755) })
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o550, "a": 0o751, "link": fs.ModeSymlink} {
		st, err := os.Lstat(filepath.Join(hooks, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := st.Mode(); got != want && got&fs.ModeSymlink == 0 {
			t.Errorf("%q has mode %v, want %v", name, got, want)
		}
	}
}

func TestTooMuchIsRefusedBeforehand(t *testing.T) {
	dir := project(t, map[string]string{".git/config": strings.Repeat("x", MaxBytes+1)})
	if _, err := New(dir, protected, false); !errors.Is(err, ErrTooLarge) {
		t.Errorf("error %v, want %v", err, ErrTooLarge)
	}
	if g, err := New(dir, protected, true); err != nil {
		t.Errorf("with mounts: %v", err)
	} else if _, err := g.Restore(); err != nil {
		t.Error(err)
	}
	if _, err := New(filepath.Join(dir, "missing"), protected, true); err == nil {
		t.Error("a project that is not there was guarded")
	}
}

func TestNothingToGuardCostsNothing(t *testing.T) {
	g, err := New("/no/such/directory", nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if aside, err := g.Restore(); err != nil || aside != nil {
		t.Errorf("set aside %v, %v", aside, err)
	}
}

func TestLinksAreKept(t *testing.T) {
	files := map[string]string{"real/hooks/a": "x"}
	for name, mounts := range map[string]bool{"with mounts": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, files)
			link(t, dir, "real", ".git")
			g, err := New(dir, []string{".git/hooks"}, mounts)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, ".git")); err != nil {
				t.Fatal(err)
			}
			write(t, dir, ".git/hooks/a", "evil")
			aside, err := g.Restore()
			want := map[string]string{"real/hooks/a": "x", ".git": "real", ".git!/hooks/a": "evil"}
			if got := listing(t, dir); err != nil || !same(got, want) || len(aside) != 1 {
				t.Errorf("set aside %v, %v; the project holds %v, want %v", aside, err, got, want)
			}
		})
	}
}

// What lies behind a link was there before, and is nobody's doing.
func TestWhatALinkLeadsToStays(t *testing.T) {
	for name, mounts := range map[string]bool{"with mounts": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, map[string]string{"real/hooks/a": "x"})
			link(t, dir, "real", ".git")
			before := listing(t, dir)
			g, err := New(dir, []string{".git/hooks", ".git/config"}, mounts)
			if err != nil {
				t.Fatal(err)
			}
			aside, err := g.Restore()
			if got := listing(t, dir); err != nil || len(aside) > 0 || !same(got, before) {
				t.Errorf("set aside %v, %v; the project holds %v", aside, err, got)
			}
		})
	}
}

// A pipe holds nothing that could be remembered.
func TestSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, exchanged := range []bool{false, true} {
		g, err := New(dir, []string{"fifo"}, false)
		if err != nil {
			t.Fatal(err)
		}
		if exchanged {
			if err := os.Remove(fifo); err != nil {
				t.Fatal(err)
			}
			write(t, dir, "fifo", "evil")
		}
		aside, err := g.Restore()
		if err != nil || (len(aside) > 0) != exchanged {
			t.Errorf("exchanged %v: set aside %v, %v", exchanged, aside, err)
		}
	}
}

// A second run that begins while the first works finds what that one did, and
// must not take it for what was there.
func TestOverlappingRunsRememberTheSame(t *testing.T) {
	dir := project(t, map[string]string{".git/config": "[core]"})
	paths := []string{".git/config"}
	first, err := New(dir, paths, false)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, ".git/config", "evil")
	second, err := New(dir, paths, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range []*Watch{first, second} {
		if _, err := g.Restore(); err != nil {
			t.Fatal(err)
		}
		if got := listing(t, dir)[".git/config"]; got != "[core]" {
			t.Errorf("after run %d the file holds %q", i+1, got)
		}
	}
	write(t, dir, ".git/config", "[user]") // by its owner, when nothing runs
	third, err := New(dir, paths, false)
	if err != nil {
		t.Fatal(err)
	}
	if aside, err := third.Restore(); err != nil || len(aside) > 0 {
		t.Errorf("what the owner wrote was set aside: %v, %v", aside, err)
	}
	if n := len(overlapping.shares); n > 0 {
		t.Errorf("%d are still remembered", n)
	}
}
