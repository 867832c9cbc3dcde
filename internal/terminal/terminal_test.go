package terminal

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestAPipeIsNoTerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if Is(w) || Is(&bytes.Buffer{}) {
		t.Error("taken for a terminal")
	}
	if got := Width(w); got != defaultWidth {
		t.Errorf("width %d", got)
	}
	if got := NewStyle(w).Bad("x"); got != "x" {
		t.Errorf("painted: %q", got)
	}
}

func TestStyleHonoursNoColor(t *testing.T) {
	if got := (Style{on: true}).Good("ok"); got != "\x1b[32mok\x1b[0m" {
		t.Errorf("painted %q", got)
	}
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pty.Close()
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	if !NewStyle(pty).on {
		t.Error("a terminal is not painted")
	}
	t.Setenv("NO_COLOR", "1")
	if NewStyle(pty).on {
		t.Error("NO_COLOR is ignored")
	}
}

func TestTableAligns(t *testing.T) {
	paint := Style{on: true}
	var buf bytes.Buffer
	rows := [][]string{
		{"tool", "ms", "status"},
		{"é", "1", paint.Good("ok")},
		{"file_read", "12345", paint.Bad("failed")},
	}
	if err := Write(&buf, rows, 1); err != nil {
		t.Fatal(err)
	}
	want := "tool          ms  status\n" +
		"é              1  \x1b[32mok\x1b[0m\n" +
		"file_read  12345  \x1b[31mfailed\x1b[0m\n"
	if diff := cmp.Diff(want, buf.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableRowsPushOnlyThemselves(t *testing.T) {
	var buf bytes.Buffer
	table := NewTable(&buf, []int{4, 2})
	for _, row := range [][]string{{"wider than four", "a", "b"}, {"x", "a", ""}} {
		if err := table.Row(row...); err != nil {
			t.Fatal(err)
		}
	}
	if want := "wider than four  a   b\nx     a\n"; buf.String() != want {
		t.Errorf("got %q, want %q", buf.String(), want)
	}
}

func TestLineIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 40).Draw(t, "width")
		got := Line(rapid.String().Draw(t, "text"), width)
		if n := len([]rune(got)); n > width {
			t.Fatalf("%d characters, wanted at most %d", n, width)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Fatalf("%q is not printable in %q", r, got)
			}
		}
	})
	if got := Line("a\n\tb\x1b[2J  c", 80); got != "a b\ufffd[2J c" {
		t.Errorf("got %q", got)
	}
	if got := Line(strings.Repeat("x", 1<<20), 5); got != "xxxx…" {
		t.Errorf("got %q", got)
	}
}

func TestProgressIsForTerminals(t *testing.T) {
	var buf bytes.Buffer
	p := NewProgress(&buf, "send", 10)
	p.Step(true)
	p.Finish()
	if buf.Len() != 0 {
		t.Errorf("wrote %q", buf.String())
	}
	p.width = 60
	p.Step(false)
	if got, want := p.line(2*time.Second), "send [======                           ] 2/10 1/s, 1 failed"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	p.total = 0
	if got := p.line(time.Second); got != "send 2 2/s, 1 failed" {
		t.Errorf("without a total: %q", got)
	}
	p.total = 1 // more steps than announced
	if got := p.line(time.Second); strings.Count(got, "=") > 40 {
		t.Errorf("an overfull bar: %q", got)
	}
}
