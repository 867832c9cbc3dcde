package agent

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/toolworker/toolworker/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	Main()
	goleak.VerifyTestMain(m)
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
