package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// checkIsolation tries the levels on this very machine: nothing is concluded
// from version numbers.
func (c *doctorCommand) checkIsolation(context.Context) []finding {
	asked := tool.Isolation(c.RequireIsolation)
	runner, err := sandbox.New(sandbox.Config{Require: asked})
	f := finding{Check: "isolation", State: stateOK}
	if err != nil {
		f.State, f.Detail, f.Refuses = stateMissing, strings.ReplaceAll(err.Error(), "\n", "; "), true
		f.Hint = "allow user namespaces or Landlock, or accept the risk with --require-isolation none"
		return []finding{f}
	}
	defer runner.Close()
	level := tool.IsolationNone
	if leveled, ok := runner.(sandbox.Leveled); ok {
		level = leveled.Level()
	}
	f.Detail = fmt.Sprintf("%s", level)
	return []finding{f}
}
