package containertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// Program is a static program that can be an agent, built once.
func Program(t testing.TB) string {
	t.Helper()
	path, err := Build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Build is Program for programs that are no tests.
func Build() (string, error) { return built() }

var buildDir string

var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "toolworker-program-")
	if err != nil {
		return "", err
	}
	buildDir = dir
	path := filepath.Join(dir, "worker")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path,
		"github.com/toolworker/toolworker/internal/exec/container/containertest/worker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build program: %w: %s", err, out)
	}
	return path, nil
})
