package sandbox

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Main()
	if os.Getenv(workerEnv) != "" {
		workerThatIsKilled()
	}
	if os.Getenv(warmWorkerEnv) != "" {
		warmWorkerThatIsKilled()
	}
	code := m.Run()
	for _, r := range shared.runners {
		if err := r.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "close runner:", err)
			code = 1
		}
	}
	os.Exit(code)
}
