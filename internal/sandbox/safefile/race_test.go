package safefile

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// swap exchanges two names below the root until the returned function is
// called: what was a directory or file becomes a symlink and back, without a
// moment in which the name is missing. Names that another swap hides are
// left alone.
func (f fixture) swap(t *testing.T, a, b string) (stop func()) {
	t.Helper()
	done := make(chan struct{})
	var wg sync.WaitGroup
	a, b = filepath.Join(f.dir, a), filepath.Join(f.dir, b)
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil && !errors.Is(err, unix.ENOENT) {
				t.Errorf("exchange %s and %s: %v", a, b, err)
				return
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

const races = 3000

// CASES 20 to 22 while somebody swaps the directory for a symlink out of the root.
func TestOpenNeverEscapes(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "dir/secret", "mine")
		f.link(t, f.outside, "evil")
		f.put(t, "file", "mine")
		f.link(t, filepath.Join(f.outside, "secret"), "evilfile")
		defer f.swap(t, "dir", "evil")()
		defer f.swap(t, "file", "evilfile")()
		read := 0
		for i := range races {
			name := []string{"dir/secret", "file"}[i%2]
			var b bytes.Buffer
			switch _, err := f.Copy(&b, name, 100); {
			case err == nil && b.String() == "mine":
				read++
			case err == nil:
				t.Fatalf("%s: read %q", name, b.String())
			case !errors.Is(err, ErrSymlink) && !errors.Is(err, unix.ENOTDIR):
				t.Fatalf("%s: %v", name, err)
			}
		}
		t.Logf("%d of %d read", read, races)
	})
}

func TestWriteNeverEscapes(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "dir/secret", "mine")
		f.link(t, f.outside, "evil")
		defer f.swap(t, "dir", "evil")()
		written := 0
		for range races / 10 { // each is an fsync
			for _, name := range []string{"dir/secret", "dir/new/deep"} {
				_, err := f.Write(name, strings.NewReader("evil"), 100)
				if err == nil {
					written++
				} else if !errors.Is(err, ErrSymlink) && !errors.Is(err, unix.ENOTDIR) {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		if b, err := os.ReadFile(filepath.Join(f.outside, "secret")); string(b) != "secret" {
			t.Errorf("secret is now %q, %v", b, err)
		}
		if entries, err := os.ReadDir(f.outside); len(entries) != 1 {
			t.Errorf("outside now holds %v, %v", entries, err)
		}
		t.Logf("%d written", written)
	})
}

// Up from a directory that is being moved: never to its new parent.
func TestResolveNeverEscapes(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "a/b/file", "x")
		f.put(t, "c/file", "x")
		f.link(t, f.outside, "evil")
		defer f.swap(t, "a/b", "c")()
		defer f.swap(t, "a", "evil")()
		for range races {
			got, err := f.Resolve("a/b/../../x")
			if err == nil && got != "x" || err != nil && !errors.Is(err, ErrEscape) && !errors.Is(err, ErrSymlink) {
				t.Fatalf("Resolve = %q, %v", got, err)
			}
			// secret exists outside only.
			if got, err := f.Resolve("a/secret"); err == nil && got != "a/secret" && got != "evil/secret" {
				t.Fatalf("Resolve = %q, %v", got, err)
			}
		}
	})
}
