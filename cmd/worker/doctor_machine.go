package main

import (
	"cmp"
	"context"
	"strings"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// checkMachine tries interpreter, isolation and limits on this very machine:
// nothing is concluded from version numbers. Its last finding says whether
// worker run would start.
func (c *doctorCommand) checkMachine(ctx context.Context) []finding {
	asked := tool.Isolation(c.RequireIsolation)
	report := sandbox.Probe(ctx, sandbox.Config{Require: asked})
	var findings []finding
	for _, found := range report.Findings {
		f := finding{Check: found.Name, State: stateOK, Detail: oneLine(found.Detail), Hint: found.Hint}
		if !found.Found {
			f.State = stateMissing
		}
		findings = append(findings, f)
	}
	asks := finding{Check: "isolation asked for", State: stateOK, Detail: cmp.Or(string(asked), "full, else reduced")}
	if report.Err != nil {
		asks.State, asks.Refuses = stateMissing, true
		asks.Detail += ": " + oneLine(report.Err.Error())
		asks.Hint = "mend what is missing above, or accept the risk with --require-isolation none"
	}
	return append(findings, asks)
}

func oneLine(text string) string { return strings.ReplaceAll(text, "\n", "; ") }
