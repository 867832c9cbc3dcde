package main

import (
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/command/reference"
)

// TestReference: the documents say of every command and flag what the program does.
func TestReference(t *testing.T) {
	k, err := command.New(name, &grammar{}, options()...)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := reference.Variables(k.Model, command.EnvPrefix); len(wrong) > 0 {
		t.Errorf("variables: %v", wrong)
	}
	reference.Verify(t, "../../README.md", "publisher commands", reference.Commands(k.Model))
	for _, path := range append([][]string{{}}, reference.Leaves(k.Model)...) {
		table, err := reference.Flags(k.Model, path...)
		if err != nil {
			t.Fatal(err)
		}
		reference.Verify(t, "../../docs/reference.md", strings.TrimSpace(name+" "+strings.Join(path, " ")), table)
	}
}
