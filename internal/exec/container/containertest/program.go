package containertest

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

var buildDir struct {
	sync.Mutex
	dir string
	err error
	out []byte
}

// Program is a static program that can be an agent, built once.
func Program(t testing.TB) string {
	t.Helper()
	buildDir.Lock()
	defer buildDir.Unlock()
	if buildDir.dir == "" {
		dir, err := os.MkdirTemp("", "toolworker-program-")
		if err != nil {
			t.Fatal(err)
		}
		buildDir.dir = dir
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, "worker"),
			"github.com/toolworker/toolworker/internal/exec/container/containertest/worker")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		buildDir.out, buildDir.err = cmd.CombinedOutput()
	}
	if buildDir.err != nil {
		t.Fatalf("build program: %v: %s", buildDir.err, buildDir.out)
	}
	return filepath.Join(buildDir.dir, "worker")
}
