package main

import (
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/command/reference"
)

// TestReference: the documents say of every flag what the program does.
func TestReference(t *testing.T) {
	k, err := command.New(name, &grammar{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := reference.Variables(k.Model, command.EnvPrefix); len(wrong) > 0 {
		t.Errorf("variables: %v", wrong)
	}
	for _, path := range reference.Leaves(k.Model) {
		table, err := reference.Flags(k.Model, path...)
		if err != nil {
			t.Fatal(err)
		}
		part := name + " " + strings.Join(path, " ")
		reference.Verify(t, "../../docs/reference.md", part, table)
		if part == "worker run" {
			reference.Verify(t, "../../README.md", part, table)
		}
	}
}
