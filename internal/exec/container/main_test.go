package container_test

import (
	"os"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
)

func TestMain(m *testing.M) { os.Exit(containertest.Main(m)) }
