package safefile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// CASES 25: whatever the umask is, 0600 in 0700.
func TestWrite(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		sum, err := f.Write("a/b/file", strings.NewReader("hello"), 5)
		if err != nil || sum != (Sum{5, helloSum}) {
			t.Fatalf("Write = %+v, %v", sum, err)
		}
		for name, mode := range map[string]os.FileMode{"a": 0o700, "a/b": 0o700, "a/b/file": 0o600} {
			if info, err := f.Stat(name); err != nil || info.Mode.Perm() != mode {
				t.Errorf("Stat(%s) = %+v, %v; want mode %v", name, info, err, mode)
			}
		}
		if err := os.Chmod(filepath.Join(f.dir, "a/b/file"), os.ModeSetuid|0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write("a/b/file", strings.NewReader("again"), 5); err != nil {
			t.Fatal(err)
		}
		if info, err := f.Stat("a/b/file"); err != nil || info.Mode != 0o600 {
			t.Errorf("replaced: %+v, %v", info, err)
		}
		f.wantEntries(t, "a/b", "file")
	})
}

func (f fixture) wantEntries(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(f.dir, dir))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s holds %q, want %q", dir, got, want)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteAllOrNothing(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "file", "old")
		if _, err := f.Write("file", io.MultiReader(strings.NewReader("new"), brokenReader{}), 100); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write from a broken reader: %v", err)
		}
		if _, err := f.Write("file", strings.NewReader("too long"), 7); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Write above the limit: %v", err)
		}
		if b, _ := os.ReadFile(filepath.Join(f.dir, "file")); string(b) != "old" {
			t.Errorf("file holds %q", b)
		}
		f.wantEntries(t, ".", "file")
	})
}

func TestWriteRefuses(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "file", "x")
		f.put(t, "dir/x", "x")
		f.link(t, filepath.Join(f.outside, "secret"), "link")
		f.link(t, f.outside, "up")
		f.link(t, "nowhere", "dangling")
		if err := unix.Mkfifo(filepath.Join(f.dir, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]error{
			"link": ErrSymlink, "up/secret": ErrSymlink, "up/new/x": ErrSymlink, "dangling": ErrSymlink,
			"dangling/x": ErrSymlink, "dir": ErrNotRegular, "fifo": ErrNotRegular, "file/x": unix.ENOTDIR,
		} {
			if _, err := f.Write(name, strings.NewReader("evil"), 100); !errors.Is(err, want) {
				t.Errorf("Write(%q): %v, want %v", name, err, want)
			}
		}
		if b, _ := os.ReadFile(filepath.Join(f.outside, "secret")); string(b) != "secret" {
			t.Errorf("secret is now %q", b)
		}
	})
}

func TestWriteGivesToTheRootsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	f := newFixture(t)
	if err := os.Chown(f.dir, 12345, 23456); err != nil {
		t.Skip("chown:", err)
	}
	r, err := OpenRoot(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Write("a/file", strings.NewReader("x"), 1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "a/file"} {
		info, err := os.Stat(filepath.Join(f.dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 12345 || st.Gid != 23456 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}
