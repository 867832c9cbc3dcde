// Package fleet runs the built programs as an operator would: real worker
// and publisher processes against a real server.
package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

const module = "github.com/toolworker/toolworker"

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolworker-bin-")
	if err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", dir, module+"/cmd/worker", module+"/cmd/publisher")
	// Static, as `make build` makes them: the worker brings itself into containers.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return dir, nil
})

// Binary is the path of the worker or the publisher, built once per process.
func Binary(t testing.TB, name string) string {
	t.Helper()
	dir, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// Main runs the tests of a package and removes what Binary built.
func Main(m *testing.M) {
	code := m.Run()
	if dir, err := build(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}
