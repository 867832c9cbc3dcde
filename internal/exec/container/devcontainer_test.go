package container_test

import (
	"os/exec"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
)

func needCLI(t testing.TB) {
	t.Helper()
	for _, name := range []string{"devcontainer", "docker"} {
		if _, err := exec.LookPath(name); err != nil {
			containertest.Missing(t, "the command %s", name)
		}
	}
}
