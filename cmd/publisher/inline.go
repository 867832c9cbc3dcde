package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/tool"
)

// inlineCommand is `publisher inline`.
type inlineCommand struct {
	Path    string       `arg:"" name:"file" optional:"" placeholder:"FILE.py" help:"Python file to run; - reads standard input."`
	Code    string       `name:"code" short:"c" placeholder:"CODE" help:"Python code to run, instead of a file."`
	Name    command.Name `name:"name" placeholder:"NAME" help:"Name of the inline tool (the file's, else none)."`
	Writes  bool         `name:"writes" help:"The code writes into the project."`
	Network bool         `name:"network" help:"The code needs the network, if the project allows it."`
	requestFlags
}

// Help is the long form of --help.
func (*inlineCommand) Help() string {
	return `The code finds its input in input_data and leaves a value in result. What it prints is the output. For example:

    publisher inline -p demo -c 'import os; print(len(os.listdir("."))); result = {"ok": True}'
    publisher inline report.py -p demo -i depth:=2 --timeout 5`
}

// Validate asks for one of file and code.
func (c *inlineCommand) Validate() error {
	if (c.Path == "") == (c.Code == "") {
		return errors.New("expected either a file or --code")
	}
	if c.Path == "-" && c.File == "-" {
		return errors.New("code and input cannot both be read from standard input")
	}
	return c.requestFlags.Validate()
}

// Run sends one request with inline Python and waits for its result.
func (c *inlineCommand) Run(ctx context.Context, s *session) error {
	code := c.Code
	if c.Path != "" {
		text, err := readFile(c.Path, s.In)
		if err != nil {
			return command.Usagef("%w", err)
		}
		code = string(text)
	}
	r, err := c.request(s.In)
	if err != nil {
		return err
	}
	r.Inline = &tool.Inline{
		Name: c.inlineName(), Source: "custom", Code: code,
		Capability: tool.Capability{Writes: c.Writes, Network: c.Network},
	}
	return s.ask(ctx, r, &c.requestFlags)
}

// inlineName is the name that was given, else that of the file where it can be one.
func (c *inlineCommand) inlineName() string {
	if c.Name != "" {
		return string(c.Name)
	}
	if stem := strings.TrimSuffix(filepath.Base(c.Path), ".py"); c.Path != "" && tool.ValidName(stem) {
		return stem
	}
	return ""
}
