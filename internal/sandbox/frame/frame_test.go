package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var reports = []*Report{
	{Kind: Started},
	{Kind: Started, NoProc: true},
	{Kind: Failed, Step: "exec", Errno: 2},
	{Kind: Failed, Step: "mount: €"},
	{Kind: Exited, Status: 0x8b, CPU: time.Second, MaxRSS: 1 << 40},
	{Kind: Exited, Killed: true, OutOfMemory: true, TooManyProcesses: true, MemoryPeak: 5, PIDsPeak: 7},
}

func TestReportsArriveAsTheyWereSent(t *testing.T) {
	var b bytes.Buffer
	for _, r := range reports {
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range reports {
		got, err := ReadReport(&b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	if _, err := ReadReport(&b); !errors.Is(err, io.EOF) {
		t.Errorf("after the last report: %v, want EOF", err)
	}
}

func TestLongReasonIsCut(t *testing.T) {
	var b bytes.Buffer
	r := &Report{Kind: Failed, Step: strings.Repeat("x", 1<<20)}
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := ReadReport(&b)
	if err != nil || len(got.Step) != maxReport-4 {
		t.Errorf("reason of %d bytes, %v", len(got.Step), err)
	}
}

func raw(kind Kind, size uint32, payload string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, size)
	return append(append(b, byte(kind)), payload...)
}

func TestHostileReportsAreRefused(t *testing.T) {
	for name, b := range map[string][]byte{
		"huge length":       raw(Exited, 1<<31, ""),
		"one byte too long": raw(Failed, maxReport+1, strings.Repeat("x", maxReport+1)),
		"cut short":         raw(Exited, exitedSize, "abc"),
		"cut in the header": {1, 0},
		"unknown kind":      raw('?', 0, ""),
		"worker's kind":     raw(Kill, 0, ""),
		"started too long":  raw(Started, 2, "xx"),
		"failed too short":  raw(Failed, 3, "xxx"),
		"failed not UTF-8":  raw(Failed, 5, "\x00\x00\x00\x00\xff"),
		"exited too short":  raw(Exited, 5, "xxxxx"),
		"negative usage":    raw(Exited, exitedSize, strings.Repeat("\xff", exitedSize)),
	} {
		if r, err := ReadReport(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: read as %+v", name, r)
		}
	}
}

func TestSetupArrives(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSetup(&b, map[string]string{"a": "b"}); err != nil {
		t.Fatal(err)
	}
	var got map[string]string
	if err := ReadSetup(&b, &got); err != nil || got["a"] != "b" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := ReadSetup(bytes.NewReader(raw(Kill, 0, "")), &got); err == nil {
		t.Error("a kill was read as a set-up")
	}
	if err := WriteSetup(io.Discard, strings.Repeat("x", maxSetup)); err == nil {
		t.Error("a set-up that nobody reads was sent")
	}
	if err := (&Report{Kind: Setup}).Write(io.Discard); err == nil {
		t.Error("a set-up was sent as a report")
	}
}

func TestReadKillReturnsWhenTheWorkerIsGone(t *testing.T) {
	r, w := io.Pipe()
	done := make(chan struct{})
	go func() {
		ReadKill(r)
		close(done)
	}()
	_ = w.Close()
	<-done
	var b bytes.Buffer
	if err := WriteKill(&b); err != nil {
		t.Fatal(err)
	}
	ReadKill(&b)
	if b.Len() != 0 {
		t.Errorf("%d bytes of the order are left", b.Len())
	}
}

// FuzzReadReport: whatever the other side sends, reading ends, holds little
// and gives what can be sent again.
func FuzzReadReport(f *testing.F) {
	for _, r := range reports {
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add(raw(Exited, 1<<31, "x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := bytes.NewReader(b)
		for {
			r, err := ReadReport(in)
			if err != nil {
				return
			}
			var again bytes.Buffer
			if err := r.Write(&again); err != nil {
				t.Fatalf("report %+v cannot be sent: %v", r, err)
			}
			got, err := ReadReport(&again)
			if err != nil {
				t.Fatalf("report %+v cannot be read back: %v", r, err)
			}
			if d := cmp.Diff(r, got); d != "" {
				t.Fatal(d)
			}
		}
	})
}
