package capture

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestWriterKeepsExactlyItsLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		limit  int64
		chunks []string
		want   string
		cut    bool
	}{
		{"nothing", 10, nil, "", false},
		{"below", 10, []string{"abc", "def"}, "abcdef", false},
		{"exactly", 6, []string{"abc", "def"}, "abcdef", false},
		{"one more", 6, []string{"abc", "defg"}, "abcdef", true},
		{"chunks after the cut", 4, []string{"abc", "def", "ghi"}, "abcd", true},
		{"an empty chunk after the limit", 3, []string{"abc", ""}, "abc", false},
		{"no limit", 0, []string{"abc"}, "abc", false},
		{"within a character", 4, []string{"abc\xe2\x82", "\xac"}, "abc", true},
		{"after a stray byte", 4, []string{"abc\xff", "x"}, "abc\xff", true},
		{"a character completed by a later chunk", 6, []string{"abc\xe2", "\x82", "\xacx"}, "abc€", true},
		{"half a character written by the tool", 9, []string{"abc\xe2\x82"}, "abc\xe2\x82", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := NewWriter(Options{Limit: test.limit})
			for _, chunk := range test.chunks {
				if n, err := w.Write([]byte(chunk)); n != len(chunk) || err != nil {
					t.Fatalf("write: got %d, %v", n, err)
				}
			}
			c := finish(t, w)
			if got := read(t, c); got != test.want || c.Truncated != test.cut || c.Size() != int64(len(test.want)) {
				t.Errorf("got %q of %d bytes, truncated %v, want %q, %v", got, c.Size(), c.Truncated, test.want, test.cut)
			}
		})
	}
}

// TestWriterSpools writes around the size where memory gives way to a file.
func TestWriterSpools(t *testing.T) {
	for _, size := range []int{DefaultMemory - 1, DefaultMemory, DefaultMemory + 1, 5 << 20} {
		dir := t.TempDir()
		w := NewWriter(Options{Dir: dir})
		want := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
		for rest := want; len(rest) > 0; rest = rest[min(len(rest), 32<<10):] {
			_, _ = w.Write(rest[:min(len(rest), 32<<10)])
		}
		c := finish(t, w)
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%d bytes: %v can be seen", size, left)
		}
		for range 2 { // it can be opened again
			if got := read(t, c); got != string(want) {
				t.Errorf("%d bytes: got %d others", size, len(got))
			}
		}
		for range 2 { // and closed again
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if _, err := c.Open(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("open after close: got %v", err)
		}
	}
}

func TestWriterWithoutATemporaryDirectoryIsAFault(t *testing.T) {
	w := NewWriter(Options{Dir: filepath.Join(t.TempDir(), "gone"), Memory: 4})
	for range 3 {
		if n, err := w.Write([]byte("more than four")); n != 14 || err != nil {
			t.Fatalf("the tool is told: %d, %v", n, err)
		}
	}
	var fault *tool.Fault
	if _, err := w.Finish(); !errors.As(err, &fault) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a fault", err)
	}
}

func TestWriterOnAFullDiskIsAFault(t *testing.T) {
	full := func(string) (*os.File, error) { return os.OpenFile("/dev/full", os.O_RDWR, 0) }
	for _, chunks := range [][]string{{"at once"}, {"abc", "later"}} {
		w := NewWriter(Options{Memory: 4})
		w.spool.create = full
		for _, chunk := range chunks {
			_, _ = w.Write([]byte(chunk))
		}
		var fault *tool.Fault
		if _, err := w.Finish(); !errors.As(err, &fault) || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%q: got %v, want a fault that says ENOSPC", chunks, err)
		}
	}
}

func TestWriterLiveSeesWhatIsKept(t *testing.T) {
	var live bytes.Buffer
	var offsets []int64
	w := NewWriter(Options{Limit: 8, Live: func(offset int64, p []byte) {
		offsets = append(offsets, offset)
		live.Write(p)
	}})
	for _, chunk := range []string{"a\xffc", "", "defg", "hijk", "lmn"} {
		_, _ = w.Write([]byte(chunk))
	}
	if got := live.String(); got != "a\xffcdefgh" || len(offsets) != 3 || offsets[1] != 3 || offsets[2] != 7 {
		t.Errorf("got %q at %v", got, offsets)
	}
	_ = finish(t, w)
}

func TestWriterTakesChunksFromMany(t *testing.T) {
	w := NewWriter(Options{Limit: 100_000, Memory: 1000})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				_, _ = w.Write([]byte(strings.Repeat("x", 100)))
			}
		})
	}
	wg.Wait()
	if c := finish(t, w); c.Size() != 100_000 || !c.Truncated {
		t.Errorf("got %d bytes, truncated %v", c.Size(), c.Truncated)
	}
}

// TestWritersKeepMemoryFlat is 64 tools that write 50 MiB each, in turn.
func TestWritersKeepMemoryFlat(t *testing.T) {
	if info, err := os.Stat("/var/tmp"); err != nil || !info.IsDir() {
		t.Fatalf("a directory on disk: %v", err)
	}
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	writers := make([]*Writer, 64)
	for i := range writers {
		writers[i] = NewWriter(Options{Limit: 50 << 20, Dir: t.TempDir()})
		for range 8 { // far beyond what is kept in memory
			_, _ = writers[i].Write(chunk)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 8<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
	for range 50<<20/len(chunk) - 8 + 1 {
		_, _ = writers[0].Write(chunk)
	}
	if c := finish(t, writers[0]); c.Size() != 50<<20 || !c.Truncated {
		t.Errorf("got %d bytes, truncated %v", c.Size(), c.Truncated)
	}
	for _, w := range writers[1:] {
		_ = finish(t, w)
	}
}

// TestWriterIsTheSameHoweverChunked compares against the whole written at once.
func TestWriterIsTheSameHoweverChunked(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chunks := rapid.SliceOf(rapid.SliceOfN(rapid.SampledFrom([]byte("aé€\U0001F600\xff\xed\xa0\x80\xf4\x90")), 0, 9)).Draw(rt, "chunks")
		limit := rapid.Int64Range(1, 40).Draw(rt, "limit")
		memory := rapid.IntRange(1, 20).Draw(rt, "memory")
		whole, parts := NewWriter(Options{Limit: limit}), NewWriter(Options{Limit: limit, Memory: memory, Dir: t.TempDir()})
		_, _ = whole.Write(bytes.Join(chunks, nil))
		for _, chunk := range chunks {
			_, _ = parts.Write(chunk)
		}
		a, b := finish(rt, whole), finish(rt, parts)
		if read(rt, a) != read(rt, b) || a.Truncated != b.Truncated || a.textSize != b.textSize {
			rt.Fatalf("at once %q %v, in parts %q %v", read(rt, a), a.Truncated, read(rt, b), b.Truncated)
		}
		text, err := Text(b)
		if err != nil {
			rt.Fatal(err)
		}
		if got := read(rt, text); got != strings.ToValidUTF8(got, "") || text.Size() != int64(len(got)) {
			rt.Fatalf("text %q, said to have %d bytes", got, text.Size())
		}
	})
}

// failer is what testing.T and rapid.T share.
type failer interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

func finish(t failer, w *Writer) *Captured {
	t.Helper()
	c, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func read(t failer, c tool.Content) string {
	t.Helper()
	r, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
