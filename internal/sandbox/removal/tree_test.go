package removal

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// chain makes directories in each other, deeper than any path can name.
func chain(t *testing.T, dir string, levels int) {
	t.Helper()
	at, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for range levels {
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Mkdirat(at, "d", 0o700)
		next, openErr := unix.Openat(at, "d", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		_ = unix.Close(at)
		at, err = next, errors.Join(err, openErr)
	}
	_ = unix.Close(at)
}

func gone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
}

func TestTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "tree")
	locked := filepath.Join(dir, "a", "b", "c")
	err := os.MkdirAll(locked, 0o700)
	for n := range 1000 {
		err = errors.Join(err, os.WriteFile(filepath.Join(locked, strconv.Itoa(n)), nil, 0))
	}
	err = errors.Join(err, os.Symlink(outside, filepath.Join(locked, "file")), os.Symlink(filepath.Dir(outside), filepath.Join(dir, "link")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600), os.MkdirAll(filepath.Join(dir, ".removed-1", "x", "y"), 0o700))
	for _, d := range []string{locked, filepath.Dir(locked), filepath.Join(dir, "a"), dir} {
		err = errors.Join(err, os.Chmod(d, 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	Tree(dir)
	gone(t, dir)
	if st, err := os.Stat(outside); err != nil || st.Mode().Perm() != 0o640 {
		t.Errorf("what a link led to: %v, %v", st, err)
	}
	Tree(dir)     // is not there
	Tree(outside) // is none
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
}

// More levels than a path has room for and than this process may have
// descriptors: a removal that goes down to the end, or to each level from the
// top, fails or does not end.
func TestDeepTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	chain(t, dir, 3000)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: min(256, limit.Cur), Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	Tree(dir)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	gone(t, dir)
}

func TestContents(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if !Contents(dir) {
			t.Error("the directory is not empty")
		}
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0), os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if Contents(dir + "/missing") {
		t.Error("a directory that is not there is empty")
	}
}
