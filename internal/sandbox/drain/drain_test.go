package drain

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func newPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		t.Fatal(err)
	}
	r, w = os.NewFile(uintptr(p[0]), "r"), os.NewFile(uintptr(p[1]), "w")
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestAfterTheDeadlineTheRestComesAndNothingIsWaitedFor(t *testing.T) {
	t.Parallel()
	r, w := newPipe(t) // w stays open: there is no end of file
	want := bytes.Repeat([]byte("0123456789abcdef"), 3000)
	if _, err := w.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := r.SetDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	reader := &Reader{File: r}
	for range 2 {
		got, err := io.ReadAll(reader)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
		want = nil
	}
}

func TestBeforeTheDeadlineItIsTheFile(t *testing.T) {
	t.Parallel()
	r, w := newPipe(t)
	got := make(chan []byte, 1)
	go func() {
		b, _ := io.ReadAll(&Reader{File: r})
		got <- b
	}()
	for _, part := range []string{"one ", "two"} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	if b := <-got; string(b) != "one two" {
		t.Errorf("%q", b)
	}
}

// A survivor that goes on writing does not keep the reader.
func TestReaderDoesNotFollowAWriter(t *testing.T) {
	t.Parallel()
	r, w := newPipe(t)
	if _, err := w.WriteString("held"); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	reader, buf, got := &Reader{File: r}, make([]byte, 3), ""
	for range 10 {
		n, err := reader.Read(buf)
		got += string(buf[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.WriteString("more"); err != nil {
			t.Fatal(err)
		}
	}
	if got != "held" {
		t.Errorf("read %q", got)
	}
}
