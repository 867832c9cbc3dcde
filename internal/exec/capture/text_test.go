package capture

import (
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestTextReplacesWhatIsNoUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"":                    "",
		"plain":               "plain",
		"é€\U0001F600":        "é€\U0001F600",
		"a\xffb":              "a\uFFFDb",
		"nul\x00stays":        "nul\x00stays",
		"\xed\xa0\x80":        "\uFFFD\uFFFD\uFFFD", // a surrogate
		"end\xe2\x82":         "end\uFFFD\uFFFD",
		"\uFFFD is itself":    "\uFFFD is itself",
		"\xc0\xaf":            "\uFFFD\uFFFD", // overlong
		"\xf4\x90\x80\x80 up": "\uFFFD\uFFFD\uFFFD\uFFFD up",
	} {
		w := NewWriter(Options{})
		for i := range len(in) {
			_, _ = w.Write([]byte{in[i]})
		}
		captured, err := Text(finish(t, w))
		if err != nil {
			t.Fatal(err)
		}
		scanned, err := Text(tool.Bytes(in))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []tool.Content{captured, scanned} {
			if got := read(t, text); got != want || text.Size() != int64(len(want)) {
				t.Errorf("%q: got %q, said to have %d bytes", in, got, text.Size())
			}
		}
	}
}

func TestTextOfAFileIsStreamed(t *testing.T) {
	w := NewWriter(Options{Memory: 10, Dir: t.TempDir()})
	in := strings.Repeat("x\xffé", 10_000) // longer than any buffer, never aligned
	_, _ = w.Write([]byte(in))
	text, err := Text(finish(t, w))
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(in, "\xff", "\uFFFD"); read(t, text) != want || text.Size() != int64(len(want)) {
		t.Errorf("got %d bytes, said to have %d, want %d", len(read(t, text)), text.Size(), len(want))
	}
	if err := text.Close(); err != nil {
		t.Error(err)
	}
	if _, err := text.Open(); err == nil {
		t.Error("closing the text left the content open")
	}
}

func TestTail(t *testing.T) {
	for _, test := range []struct {
		in    string
		limit int64
		want  string
	}{
		{"", 4, ""},
		{"abc", 4, "abc"},
		{"abcd", 4, "abcd"},
		{"abcde", 4, "bcde"},
		{"a€", 2, ""},
		{"a€bc", 4, "bc"},
		{"a€bc", 5, "€bc"},
		{"\xff\xff\xff\xff", 4, "\uFFFD"},
		{"\x80\x80\x80\x80\x80\x80ab", 6, "\uFFFDab"},
	} {
		if got, err := Tail(tool.Bytes(test.in), test.limit); err != nil || got != test.want {
			t.Errorf("last %d of %q: got %q, %v, want %q", test.limit, test.in, got, err, test.want)
		}
		w := NewWriter(Options{Memory: 1, Dir: t.TempDir()})
		_, _ = w.Write([]byte(test.in))
		if got, err := Tail(finish(t, w), test.limit); err != nil || got != test.want {
			t.Errorf("spooled, last %d of %q: got %q, %v, want %q", test.limit, test.in, got, err, test.want)
		}
	}
}
