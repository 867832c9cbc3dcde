package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/toolworker/toolworker/internal/command"
)

// versionCommand is `worker version`.
type versionCommand struct {
	JSON bool `name:"json" help:"Print one JSON document."`
}

// Run prints the version.
func (c *versionCommand) Run(p *process) error {
	v := struct {
		Version string `json:"version"`
		Go      string `json:"go"`
		OS      string `json:"os"`
		Arch    string `json:"arch"`
	}{command.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
	if c.JSON {
		return json.NewEncoder(p.Out).Encode(v)
	}
	_, err := fmt.Fprintf(p.Out, "worker %s %s %s/%s\n", v.Version, v.Go, v.OS, v.Arch)
	return err
}
