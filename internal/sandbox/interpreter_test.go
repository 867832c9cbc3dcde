package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestScriptsAreAskedLast(t *testing.T) {
	shims, real := t.TempDir(), t.TempDir()
	shim, binary := filepath.Join(shims, "python3"), filepath.Join(real, "python3")
	if err := os.WriteFile(shim, []byte("#!/bin/sh\nexec python3 \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", shims+string(filepath.ListSeparator)+real)
	got := pythonCandidates()
	if at, after := slices.Index(got, binary), slices.Index(got, shim); at != 0 || after != len(got)-1 {
		t.Errorf("candidates %v", got)
	}
}
