package container_test

import (
	"os"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
)

func TestMain(m *testing.M) {
	if order := os.Getenv(victimEnv); order != "" {
		victim(order)
		return
	}
	os.Exit(containertest.Main(m))
}
