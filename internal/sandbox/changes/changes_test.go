package changes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/tool"
)

// changed is the list of what act changes below dir, "+a ~b -c".
func changed(t testing.TB, dir string, l Limits, act func()) (string, bool) {
	t.Helper()
	s, err := Take(dir, l)
	if err != nil {
		t.Fatal(err)
	}
	act()
	list, truncated, err := s.Since()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	signs := map[string]string{tool.Created: "+", tool.Modified: "~", tool.Deleted: "-"}
	var words []string
	for _, c := range list {
		words = append(words, signs[c.Change]+c.Path)
	}
	return strings.Join(words, " "), truncated
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(t *testing.T, in func(string) string)
		want string
	}{
		"nothing": {func(t *testing.T, in func(string) string) {}, ""},
		"read": {func(t *testing.T, in func(string) string) {
			_, err := os.ReadFile(in("file"))
			must(t, err)
		}, ""},
		"created": {func(t *testing.T, in func(string) string) {
			must(t, os.MkdirAll(in("new/sub"), 0o755))
			must(t, os.WriteFile(in("new/sub/x"), nil, 0o644))
			must(t, os.Symlink("/etc/passwd", in("s")))
		}, "+new +new/sub +new/sub/x +s"},
		"modified": {func(t *testing.T, in func(string) string) {
			must(t, os.WriteFile(in("dir/file"), []byte("FILE"), 0o644))
		}, "~dir/file"},
		"touched": {func(t *testing.T, in func(string) string) {
			must(t, os.Chtimes(in("file"), time.Unix(1, 0), time.Unix(1, 0)))
		}, "~file"},
		"hidden": {func(t *testing.T, in func(string) string) {
			info, err := os.Stat(in("file"))
			must(t, err)
			must(t, os.WriteFile(in("file"), []byte("FILE"), 0o644))
			must(t, os.Chtimes(in("file"), info.ModTime(), info.ModTime()))
		}, "~file"},
		"mode": {func(t *testing.T, in func(string) string) { must(t, os.Chmod(in("file"), 0o600)) }, "~file"},
		"deleted": {func(t *testing.T, in func(string) string) { must(t, os.RemoveAll(in("dir"))) },
			"-dir -dir/deep -dir/deep/file -dir/file"},
		"renamed": {func(t *testing.T, in func(string) string) { must(t, os.Rename(in("dir"), in("moved"))) },
			"-dir -dir/deep -dir/deep/file -dir/file +moved +moved/deep +moved/deep/file +moved/file"},
		"replaced": {func(t *testing.T, in func(string) string) {
			must(t, os.WriteFile(in("other"), []byte("file"), 0o644))
			must(t, os.Rename(in("other"), in("file")))
		}, "~file"},
		"file to directory": {func(t *testing.T, in func(string) string) {
			must(t, os.Remove(in("file")))
			must(t, os.Mkdir(in("file"), 0o755))
			must(t, os.WriteFile(in("file/x"), nil, 0o644))
		}, "-file +file +file/x"},
		"directory to link": {func(t *testing.T, in func(string) string) {
			must(t, os.RemoveAll(in("dir")))
			must(t, os.Symlink("/etc", in("dir")))
		}, "-dir -dir/deep -dir/deep/file -dir/file +dir"},
		"another directory": {func(t *testing.T, in func(string) string) {
			must(t, os.RemoveAll(in("dir")))
			must(t, os.Mkdir(in("dir"), 0o755))
			must(t, os.WriteFile(in("dir/new"), nil, 0o644))
		}, "-dir/deep -dir/deep/file -dir/file +dir/new"},
		"come and gone": {func(t *testing.T, in func(string) string) {
			must(t, os.WriteFile(in("x"), nil, 0o644))
			must(t, os.Remove(in("x")))
		}, ""},
		"special": {func(t *testing.T, in func(string) string) { must(t, unix.Mkfifo(in("fifo"), 0o600)) }, "+fifo"},
		"odd names": {func(t *testing.T, in func(string) string) {
			for _, n := range []string{"\xff", "a\nb", " ", "-rf"} {
				must(t, os.WriteFile(in(n), nil, 0o644))
			}
		}, "+  +-rf +a\nb +\uFFFD"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(p string) string { return filepath.Join(dir, p) }
			must(t, os.MkdirAll(in("dir/deep"), 0o755))
			for _, p := range []string{"file", "dir/file", "dir/deep/file"} {
				must(t, os.WriteFile(in(p), []byte("file"), 0o644))
			}
			must(t, os.Symlink("/", in("root"))) // never followed
			got, truncated := changed(t, dir, Limits{}, func() { c.act(t, in) })
			if got != c.want || truncated {
				t.Errorf("got %q, %v; want %q", got, truncated, c.want)
			}
		})
	}
}

// CASES 24: a limit, not a hang, and nothing wrong in what is left.
func TestBounds(t *testing.T) {
	fill := func(t *testing.T, dir string, n int) {
		for i := range n {
			must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d", i)), nil, 0o644))
		}
	}
	t.Run("changes", func(t *testing.T) {
		dir := t.TempDir()
		got, truncated := changed(t, dir, Limits{Changes: 3}, func() { fill(t, dir, 10) })
		if got != "+f0000 +f0001 +f0002" || !truncated {
			t.Errorf("got %q, %v", got, truncated)
		}
	})
	t.Run("exactly", func(t *testing.T) {
		dir := t.TempDir()
		if got, truncated := changed(t, dir, Limits{Changes: 3}, func() { fill(t, dir, 3) }); truncated {
			t.Errorf("got %q, %v", got, truncated)
		}
	})
	t.Run("entries", func(t *testing.T) {
		dir := t.TempDir()
		must(t, os.Mkdir(filepath.Join(dir, "a"), 0o755))
		must(t, os.Mkdir(filepath.Join(dir, "b"), 0o755))
		fill(t, filepath.Join(dir, "b"), 10)
		got, truncated := changed(t, dir, Limits{Entries: 5}, func() {
			fill(t, filepath.Join(dir, "a"), 2)
			fill(t, filepath.Join(dir, "b"), 11)
		})
		if got != "+a/f0000 +a/f0001" || !truncated {
			t.Errorf("got %q, %v; of b nothing is known", got, truncated)
		}
	})
	t.Run("time", func(t *testing.T) {
		dir := t.TempDir()
		got, truncated := changed(t, dir, Limits{Time: 1}, func() { fill(t, dir, 3) })
		if got != "" || !truncated {
			t.Errorf("got %q, %v", got, truncated)
		}
	})
	t.Run("depth", func(t *testing.T) {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		must(t, err)
		defer root.Close()
		got, truncated := changed(t, dir, Limits{}, func() { must(t, root.MkdirAll(strings.Repeat("d/", 1000), 0o755)) })
		if n := len(strings.Fields(got)); n != 128 || !truncated {
			t.Errorf("got %d, %v", n, truncated)
		}
	})
	t.Run("mount", func(t *testing.T) {
		dir := t.TempDir()
		at := filepath.Join(dir, "m")
		must(t, os.Mkdir(at, 0o755))
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("needs to mount:", err)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		if got, _ := changed(t, dir, Limits{}, func() { fill(t, at, 1) }); got != "" {
			t.Errorf("got %q", got)
		}
	})
}

func TestTakeRefuses(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	for _, path := range []string{"link", "file", "missing"} {
		if _, err := Take(filepath.Join(dir, path), Limits{}); err == nil {
			t.Errorf("Take(%s) succeeded", path)
		}
	}
}

// A list of changes is what has to be done to the first tree to get the second.
func TestChangesAreComplete(t *testing.T) {
	base := t.TempDir()
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		runs++
		dir := filepath.Join(base, fmt.Sprint(runs))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		step := func(int) {
			p := filepath.Join(dir, rapid.SampledFrom([]string{"a", "b", "a/a", "a/b", "b/a", "b/a/a"}).Draw(t, "path"))
			switch rapid.IntRange(0, 3).Draw(t, "act") {
			case 0:
				_ = os.Mkdir(p, 0o755)
			case 1:
				_ = os.WriteFile(p, rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "content"), 0o644)
			case 2:
				_ = os.RemoveAll(p)
			case 3:
				_ = os.Rename(p, filepath.Join(dir, rapid.SampledFrom([]string{"a", "b", "a/c", "c"}).Draw(t, "to")))
			}
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "before") {
			step(i)
		}
		before := names(dir)
		s, err := Take(dir, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for i := range rapid.IntRange(0, 8).Draw(t, "between") {
			step(i)
		}
		list, truncated, err := s.Since()
		if err != nil || truncated {
			t.Fatal(err, truncated)
		}
		for _, c := range list {
			switch c.Change {
			case tool.Created:
				before[c.Path] = true
			case tool.Deleted:
				delete(before, c.Path)
			case tool.Modified:
				if !before[c.Path] {
					t.Fatalf("modified %q was not there", c.Path)
				}
			}
		}
		if diff := cmp.Diff(names(dir), before); diff != "" {
			t.Fatal(diff)
		}
	})
}

func names(dir string) map[string]bool {
	all := map[string]bool{}
	_ = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && rel != "." {
			all[rel] = true
		}
		return nil
	})
	return all
}

func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 500 {
		sub := filepath.Join(dir, fmt.Sprint(i%20))
		must(b, os.MkdirAll(sub, 0o755))
		must(b, os.WriteFile(filepath.Join(sub, fmt.Sprint(i)), nil, 0o644))
	}
	for b.Loop() {
		if got, _ := changed(b, dir, Limits{}, func() {}); got != "" {
			b.Fatal(got)
		}
	}
}
