package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// fixture is a root with something hostile around it.
type fixture struct {
	*Root
	dir     string // the root
	outside string // a directory beside it, with the file secret
}

func newFixture(t testing.TB) fixture {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{dir: filepath.Join(base, "project-1"), outside: filepath.Join(base, "project-10")}
	for _, d := range []string{f.dir, f.outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	f.put(t, filepath.Join(f.outside, "secret"), "secret")
	if f.Root, err = OpenRoot(f.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Root.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// put writes a file, by a path relative to the root or an absolute one.
func (f fixture) put(t testing.TB, path, text string) {
	t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.dir, path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (f fixture) link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, filepath.Join(f.dir, name)); err != nil {
		t.Fatal(err)
	}
}

// bothWays runs a test with openat2 and with the walk that replaces it.
func bothWays(t *testing.T, test func(t *testing.T)) {
	t.Run("openat2", func(t *testing.T) {
		if walkOnly.Load() {
			t.Skip("this kernel has no openat2")
		}
		test(t)
	})
	t.Run("walk", func(t *testing.T) {
		before := walkOnly.Swap(true)
		t.Cleanup(func() { walkOnly.Store(before) })
		test(t)
	})
}

func TestOpenRootRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", "/", "//", "/./", "/..", "relative", file, dir + "/missing", dir + "/\x00"} {
		if r, err := OpenRoot(path); err == nil {
			t.Errorf("OpenRoot(%q) succeeded as %s", path, r.Path())
			r.Close()
		}
	}
}

func TestOpenRootResolves(t *testing.T) {
	f := newFixture(t)
	alias := f.dir + "-alias"
	if err := os.Symlink(f.dir, alias); err != nil {
		t.Fatal(err)
	}
	r, err := OpenRoot(alias + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if r.Path() != f.dir {
		t.Errorf("Path() = %s, want %s", r.Path(), f.dir)
	}
	for _, path := range []string{alias + "/a/b", f.dir + "//a/./b", "a/b"} {
		if got, err := r.Relative(path); got != "a/b" || err != nil {
			t.Errorf("Relative(%q) = %q, %v", path, got, err)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	f := newFixture(t)
	for range 2 {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Stat("."); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Stat on a closed root: %v", err)
	}
}

func TestRelative(t *testing.T) {
	f := newFixture(t)
	for path, want := range map[string]string{
		f.dir:                   ".",
		f.dir + "/":             ".",
		f.dir + "/a":            "a",
		f.dir + "/a/../b":       "a/../b",
		"/" + f.dir + "//a":     "a",
		f.outside:               "",
		f.outside + "/x":        "", // CASES 19
		filepath.Dir(f.dir):     "",
		f.dir + "/../project-1": "../project-1",
		"/":                     "",
		"":                      ".",
		"./a/.":                 "a",
		"\x00":                  "",
	} {
		got, err := f.Relative(path)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("Relative(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"", "/", "/etc/passwd", "..", ".", "a/..", "../a", "a//b", "a/", "./a", "a\x00b", f.dir} {
		if _, err := f.Open(name, 1); !errors.Is(err, ErrName) {
			t.Errorf("Open(%q): %v", name, err)
		}
		if _, err := f.Write(name, strings.NewReader("x"), 1); !errors.Is(err, ErrName) {
			t.Errorf("Write(%q): %v", name, err)
		}
	}
	for _, name := range []string{"...", "..a", "-x", "a b", "a\nb", `a\b`, "\xff\xfe", "ü", "$(id)", ".git"} {
		if _, err := f.Write(name, strings.NewReader("x"), 1); err != nil {
			t.Errorf("Write(%q): %v", name, err)
		}
		if _, err := f.Hash(name, 1); err != nil {
			t.Errorf("Hash(%q): %v", name, err)
		}
	}
	if _, err := f.Open(strings.Repeat("x", 300), 1); !errors.Is(err, unix.ENAMETOOLONG) {
		t.Errorf("Open of a long name: %v", err)
	}
}
