package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestResolve(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "src/deep/file", "x")
		f.link(t, "src/deep", "down")
		f.link(t, filepath.Join(f.dir, "src"), "absolute")
		f.link(t, f.outside, "outside")
		f.link(t, "../project-10", "up")
		f.link(t, "loop", "loop")
		f.link(t, "nowhere", "dangling")
		f.link(t, "..", "parent")
		f.link(t, ".", "self")
		f.link(t, "../../..", "src/deep/far")
		f.link(t, "/proc/self/root", "magic")
		for path, want := range map[string]string{
			".":                      ".",
			"":                       ".",
			f.dir:                    ".",
			"src/deep/file":          "src/deep/file",
			f.dir + "/src/deep":      "src/deep",
			"new/file":               "new/file",
			"src/new":                "src/new",
			"src/deep/file/x":        "src/deep/file/x",
			"src/..":                 ".",
			"src/deep/../deep/file":  "src/deep/file",
			"down/file":              "src/deep/file",
			"down/..":                "src", // CASES 20: where the link led, not where it stands
			"down/../../src":         "src",
			"absolute/deep":          "src/deep",
			"absolute/../src":        "src",
			"self/self/src":          "src",
			"dangling":               "nowhere",
			"dangling/x":             "nowhere/x",
			"outside":                "",
			"outside/../project-1":   "",
			"up":                     "",
			"up/secret":              "",
			"parent":                 "",
			"parent/project-1/src":   "",
			"src/deep/far":           "",
			"down/../../..":          "",
			"..":                     "",
			"../project-1":           "",
			"loop":                   "",
			"magic/etc/passwd":       "",
			"new/../src":             "", // nobody knows what new will be
			"src/deep/file/..":       "",
			f.outside + "/secret":    "",
			f.dir + "/../project-10": "",
		} {
			got, err := f.Resolve(path)
			if got != want || (err != nil) != (want == "") {
				t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
			}
			if want == "" && !errors.Is(err, ErrEscape) {
				t.Errorf("Resolve(%q): %v is no ErrEscape", path, err)
			}
		}
	})
}

func TestResolveDeep(t *testing.T) {
	f := newFixture(t)
	dir, err := os.OpenRoot(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	name := strings.TrimSuffix(strings.Repeat("d/", 1000), "/")
	if err := dir.MkdirAll(name, 0o700); err != nil {
		t.Fatal(err)
	}
	before := openDescriptors(t)
	if got, err := f.Resolve(name + "/.."); got != strings.TrimSuffix(name, "/d") || err != nil {
		t.Errorf("Resolve = %d bytes, %v", len(got), err)
	}
	if after := openDescriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func openDescriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Whatever tree of links there is: Resolve agrees with the kernel's own walk
// where that stays below the root, and refuses where it does not.
func TestResolveAgreesWithTheKernel(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	trees := 0
	rapid.Check(t, func(t *rapid.T) {
		trees++
		dir := filepath.Join(base, fmt.Sprint(trees), "root")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		part := rapid.SampledFrom([]string{"a", "b", "c", "..", "."})
		path := rapid.Custom(func(t *rapid.T) string {
			p := strings.Join(rapid.SliceOfN(part, 1, 4).Draw(t, "parts"), "/")
			if rapid.IntRange(0, 5).Draw(t, "absolute") == 0 {
				return dir + "/" + p
			}
			return p
		})
		for _, name := range []string{"a", "b", "c", "a/a", "a/b", "b/c", "a/b/c"} {
			at := filepath.Join(dir, name)
			switch rapid.IntRange(0, 3).Draw(t, "kind of "+name) {
			case 0:
				_ = os.Mkdir(at, 0o700)
			case 1:
				_ = os.Symlink(path.Draw(t, "target"), at)
			}
		}
		r, err := OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		asked := path.Draw(t, "path")
		got, err := r.Resolve(asked)
		if err != nil {
			if !errors.Is(err, ErrEscape) {
				t.Fatalf("Resolve(%q): %v", asked, err)
			}
			return
		}
		if got == ".." || strings.HasPrefix(got, "../") || filepath.IsAbs(got) {
			t.Fatalf("Resolve(%q) = %q", asked, got)
		}
		full := asked
		if !filepath.IsAbs(full) {
			full = dir + "/" + full
		}
		kernel, err := os.Open(full)
		if err != nil {
			return // it does not exist
		}
		defer kernel.Close()
		where, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", kernel.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		if where != filepath.Join(dir, got) {
			t.Fatalf("Resolve(%q) = %q, the kernel came to %q", asked, got, where)
		}
	})
}
