package shim

import (
	"go/build"
	"path"
	"slices"
	"strings"
	"testing"
)

// early are the packages that are initialised before golang.org/x/sys/unix,
// or with it. Packages of a program are initialised in the order of their
// paths, as soon as what they import is: one import more, and every tool
// waits until the queue, the tracing and the schemas of the worker are ready.
var early = []string{
	"bytes", "encoding/binary", "encoding/json", "errors", "fmt", "io", "io/fs", "math", "os", "path", "runtime", "slices", "strconv",
	"strings", "sync", "sync/atomic", "syscall", "time", "unicode/utf8", "unsafe", "golang.org/x/sys/unix",
}

func TestShimIsInitialisedEarly(t *testing.T) {
	const module = "github.com/toolworker/toolworker/"
	seen := map[string]bool{}
	var look func(dir, from string)
	look = func(dir, from string) {
		if seen[dir] {
			return
		}
		seen[dir] = true
		p, err := build.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range p.Imports {
			if rest, ok := strings.CutPrefix(imported, module); ok {
				look(path.Join("../../..", rest), imported)
			} else if !slices.Contains(early, imported) {
				t.Errorf("%s imports %s", from, imported)
			}
		}
	}
	look(".", module+"internal/sandbox/shim")
	if len(seen) < 4 {
		t.Errorf("looked at %d packages only", len(seen))
	}
}
