package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/terminal"
)

// doctorCommand is `worker doctor`.
type doctorCommand struct {
	NATSURL string `name:"nats-url" group:"nats" placeholder:"URL" help:"Server to look for; without it, whether the embedded one could start."`
	command.Connection
	EmbeddedListen string `name:"embedded-listen" group:"nats" default:"127.0.0.1:4222" placeholder:"ADDRESS" help:"Where the embedded server would listen (${default})."`
	execution
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Help is the long form of --help.
func (*doctorCommand) Help() string {
	return `Exit code 1 if the isolation that --require-isolation asks for cannot be had here; everything else that is missing is told with a hint and is no failure.`
}

// state is how a check ended.
type state string

// The states. They are a contract with scripts.
const (
	stateOK      state = "ok"
	stateOff     state = "off"     // not there, and not needed by everybody
	stateMissing state = "missing" // something that is asked for, or that most want
)

// finding is what one check found.
type finding struct {
	Check  string `json:"check"`
	State  state  `json:"state"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitzero"`
	// Refuses: worker run would not start.
	Refuses bool `json:"refuses,omitzero"`
}

// Run makes every check and tells what it found.
func (c *doctorCommand) Run(ctx context.Context, p *process) error {
	var findings []finding
	for _, check := range []func(context.Context) []finding{
		c.checkMachine, c.checkEngine, c.checkDevcontainer, c.checkNATS,
	} {
		findings = append(findings, check(ctx)...)
	}
	var err error
	if c.JSON {
		err = json.MarshalWrite(p.Out, struct {
			Version string    `json:"version"`
			Checks  []finding `json:"checks"`
		}{command.Version(), findings}, jsontext.WithIndent("  "))
		fmt.Fprintln(p.Out)
	} else {
		err = printFindings(p, findings)
	}
	for _, f := range findings {
		if f.Refuses && err == nil {
			err = &command.Error{Code: command.Failed, Err: fmt.Errorf("%s: %s", f.Check, f.Detail), Hint: f.Hint}
		}
	}
	return err
}

func printFindings(p *process, findings []finding) error {
	style := terminal.NewStyle(p.Out)
	paint := map[state]func(string) string{stateOK: style.Good, stateOff: style.Faint, stateMissing: style.Bad}
	rows := make([][]string, len(findings))
	for i, f := range findings {
		detail := f.Detail
		if f.Hint != "" {
			detail += " " + style.Faint("("+f.Hint+")")
		}
		rows[i] = []string{paint[f.State](string(f.State)), f.Check, detail}
	}
	return terminal.Write(p.Out, rows)
}
