// Package integration holds the tests that need real servers, engines and
// clients of other languages.
package integration

import (
	"testing"

	"github.com/toolworker/toolworker/integration/fleet"
	"github.com/toolworker/toolworker/internal/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main()
	fleet.Main(m)
}
