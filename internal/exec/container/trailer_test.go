package container

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTrailerIsFoundHoweverItIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[ab\nSECRET ]{0,60}`).Draw(t, "before")
		if strings.Contains(before, "\nSECRET ") {
			t.Skip()
		}
		all := before + "\nSECRET exit 7\n0m0.00s 0m0.00s\n0m1.50s 0m0.25s\n"
		var out bytes.Buffer
		tr := &trailer{to: &out, nonce: "SECRET"}
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			_, _ = tr.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		code, why, ok := tr.end()
		// A line break that ends what came before belongs to the secret's line.
		if code != 7 || why != "" || !ok || out.String() != before || tr.cpu != 1750*time.Millisecond {
			t.Fatalf("code %d, %q, %v, cpu %v, passed %q", code, why, ok, tr.cpu, out.String())
		}
	})
}

func TestTrailerRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"", "no secret at all", "\nSECRET exit x\n", "\nSECRET exit 999\n", "\nSECRET what\n", "\nSECRET why \n", "\nSECRE exit 0\n"} {
		tr := &trailer{to: &bytes.Buffer{}, nonce: "SECRET"}
		_, _ = tr.Write([]byte(said))
		if _, _, ok := tr.end(); ok {
			t.Errorf("%q: taken for an ending", said)
		}
	}
	tr := &trailer{to: &bytes.Buffer{}, nonce: "SECRET"}
	_, _ = tr.Write([]byte("\nSECRET pids 30\n\nSECRET exit 137\n"))
	if code, _, ok := tr.end(); !ok || code != 137 || !tr.tooMany {
		t.Errorf("too many processes: code %d, %v, %v", code, ok, tr.tooMany)
	}
	tr = &trailer{to: &bytes.Buffer{}, nonce: "SECRET"}
	_, _ = tr.Write([]byte("\nSECRET why x: command not found\n" + strings.Repeat("x", 100_000)))
	if _, why, ok := tr.end(); !ok || len(why) > maxTrailer {
		t.Errorf("an endless trailer: %d bytes, %v", len(why), ok)
	}
}
