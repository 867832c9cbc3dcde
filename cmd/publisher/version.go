package main

import (
	"fmt"

	"github.com/toolworker/toolworker/internal/command"
)

// versionCommand is `publisher version`.
type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(s *session) error {
	if s.JSON {
		return s.printJSON(struct {
			Version string `json:"version"`
		}{command.Version()})
	}
	_, err := fmt.Fprintf(s.Out, "publisher %s\n", command.Version())
	return err
}
