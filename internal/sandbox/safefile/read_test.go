package safefile

import (
	"bytes"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

const helloSum = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"

func TestCopy(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "a/b/file", "hello")
		var b bytes.Buffer
		sum, err := f.Copy(&b, "a/b/file", 5)
		if err != nil || sum != (Sum{5, helloSum}) || b.String() != "hello" {
			t.Errorf("Copy = %+v, %v, %q", sum, err, b.String())
		}
		if _, err := f.Copy(&b, "a/b/file", 4); !errors.Is(err, ErrTooLarge) {
			t.Errorf("Copy above the limit: %v", err)
		}
		if _, err := f.Open("a/b/other", 4); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("Open of a missing file: %v", err)
		}
	})
}

// A file whose size is not what fstat says (as in /proc) or that grows.
func TestCopyCountsWhatItReads(t *testing.T) {
	for size, want := range map[int]error{9: nil, 10: nil, 11: ErrTooLarge, 1 << 20: ErrTooLarge} {
		var b bytes.Buffer
		sum, err := copyCounted(&b, bytes.NewReader(make([]byte, size)), 10)
		if !errors.Is(err, want) || b.Len() > 10 || int64(b.Len()) != sum.Size {
			t.Errorf("%d bytes: copied %d, sum %+v, %v", size, b.Len(), sum, err)
		}
	}
}

// CASES 20 to 23: what stands at the name is not a plain file of the root.
func TestOpenRefusesPromptly(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "file", "x")
		f.put(t, "dir/file", "x")
		f.link(t, "file", "link")
		f.link(t, "dir", "dirlink")
		f.link(t, filepath.Join(f.outside, "secret"), "absolute")
		f.link(t, "../project-10", "up")
		f.link(t, "nowhere", "dangling")
		f.link(t, "loop", "loop")
		f.link(t, "/proc/self/root", "magic")
		if err := unix.Mkfifo(filepath.Join(f.dir, "fifo"), 0o600); err != nil {
			t.Fatal(err)
		}
		socket, err := net.Listen("unix", filepath.Join(f.dir, "socket"))
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		if err := os.Link(filepath.Join(f.outside, "secret"), filepath.Join(f.dir, "hard")); err != nil {
			t.Fatal(err)
		}
		f.put(t, "sparse", "")
		if err := os.Truncate(filepath.Join(f.dir, "sparse"), 1<<40); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]error{
			"link": ErrSymlink, "dirlink/file": ErrSymlink, "absolute": ErrSymlink, "up/secret": ErrSymlink,
			"dangling": ErrSymlink, "loop": ErrSymlink, "magic/etc/passwd": ErrSymlink,
			"fifo": ErrNotRegular, "socket": ErrNotRegular, "dir": ErrNotRegular,
			"hard": ErrLinked, "sparse": ErrTooLarge, "file/x": unix.ENOTDIR, "missing": os.ErrNotExist,
		} {
			if file, err := f.Open(name, 1<<20); !errors.Is(err, want) {
				t.Errorf("Open(%q) = %v, %v; want %v", name, file, err, want)
			}
		}
	})
}

func TestOpenRefusesDevicesAndMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: mknod and mount")
	}
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		if err := unix.Mknod(filepath.Join(f.dir, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
			t.Skip("mknod:", err)
		}
		if _, err := f.Open("null", 10); err == nil {
			t.Error("Open of a device succeeded")
		}
		for name, mount := range map[string]func(at string) error{
			"tmpfs": func(at string) error { return unix.Mount("tmpfs", at, "tmpfs", 0, "size=1m") },
			"bind":  func(at string) error { return unix.Mount(f.outside, at, "", unix.MS_BIND, "") },
		} {
			at := filepath.Join(f.dir, name)
			f.put(t, filepath.Join(name, "file"), "x")
			if err := mount(at); err != nil {
				t.Skip("mount:", err)
			}
			t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
			if err := os.WriteFile(filepath.Join(at, "file"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := f.Open(name+"/file", 10); !errors.Is(err, ErrMount) {
				t.Errorf("Open below a %s mount: %v", name, err)
			}
		}
	})
}

func TestStat(t *testing.T) {
	bothWays(t, func(t *testing.T) {
		f := newFixture(t)
		f.put(t, "file", "hello")
		f.link(t, "file", "link")
		if err := os.Chmod(filepath.Join(f.dir, "file"), 0o4755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(f.dir, "file"), os.ModeSetuid|0o755); err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat("file")
		if err != nil || info.Size != 5 || info.Links != 1 || info.Mode != os.ModeSetuid|0o755 || info.ModTime.IsZero() {
			t.Errorf("Stat = %+v, %v", info, err)
		}
		if info, err := f.Stat("."); err != nil || !info.Mode.IsDir() {
			t.Errorf("Stat of the root = %+v, %v", info, err)
		}
		if info, err := f.Stat("link"); !errors.Is(err, ErrSymlink) {
			t.Errorf("Stat of a symlink = %+v, %v", info, err)
		}
	})
}
