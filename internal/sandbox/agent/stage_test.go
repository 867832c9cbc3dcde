package agent

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/sandbox"
)

func pack(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := "#!/bin/sh\necho " + h.Name + "\n"
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(content))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(content)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestStagedFilesCanBeRunAndNotChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	archive := pack(t, tar.Header{Typeflag: tar.TypeDir, Name: "sub", Mode: 0o755}, tar.Header{Typeflag: tar.TypeReg, Name: "sub/run.sh", Mode: 0o700})
	dir, err := f.stage("0a1b", archive)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := f.stage("0a1b", nil); err != nil || again != dir {
		t.Errorf("the same key again: %q, %v", again, err)
	}
	x, out, errs := f.sh(t, sandbox.Spec{ReadOnly: []string{dir}, Writable: true}, dir+"/sub/run.sh; echo >>"+dir+"/sub/run.sh")
	if out != "sub/run.sh\n" {
		t.Errorf("%+v, %q, %q", x, out, errs)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "sub/run.sh")); err != nil || !strings.HasSuffix(string(b), "echo sub/run.sh\n") {
		t.Errorf("changed: %q, %v", b, err)
	}
}

func TestStageRefusesWhatLeavesItsDirectory(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, archive := range map[string][]byte{
		"up":       pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "../x", Mode: 0o600}),
		"absolute": pack(t, tar.Header{Typeflag: tar.TypeReg, Name: "/tmp/toolworker-stage-test", Mode: 0o600}),
		"link":     pack(t, tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}),
		"garbage":  []byte(strings.Repeat("x", 1024)),
	} {
		if _, err := f.stage("ab", archive); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := f.stage("../x", nil); err == nil {
		t.Error("key that is no hex: accepted")
	}
	left, err := filepath.Glob(f.tmp + "/stag*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSessionStages(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(echo), defaultTiming)
	dir, err := s.Stage(t.Context(), "ab", make([]byte, 200_000))
	if err != nil || dir != "/staged/ab/200000" {
		t.Errorf("%q, %v", dir, err)
	}
	if _, err := s.Stage(t.Context(), "full", nil); err == nil || isFault(err) {
		t.Errorf("%v, want an error that is no fault", err)
	}
}
