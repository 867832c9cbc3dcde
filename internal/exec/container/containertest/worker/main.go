// Command worker is the least program that can be put into a container as an
// agent: tests build it as a static binary.
package main

import (
	"fmt"
	"os"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
)

func main() {
	sandbox.Main()
	agent.Main()
	fmt.Fprintln(os.Stderr, "this program is only of use inside a container")
	os.Exit(2)
}
