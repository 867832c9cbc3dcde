package exec

import (
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestGuardSource(t *testing.T) {
	inline := func(source, code string) *tool.Request {
		return &tool.Request{Inline: &tool.Inline{Source: source, Code: code}}
	}
	for _, test := range []struct {
		name    string
		request *tool.Request
		entry   *tool.Definition
		refused bool
	}{
		{"inline", inline("custom", "1"), nil, false},
		{"inline without a source", inline("", "1"), nil, false},
		{"no code", inline("custom", ""), nil, true},
		{"white space", inline("custom", " \n\t"), nil, true},
		{"mcp", inline("mcp", "1"), nil, true},
		{"letter case", inline("Custom", "1"), nil, true},
		{"command", &tool.Request{Tool: "x"}, &tool.Definition{Source: "custom", Command: []string{"true"}}, false},
		{"catalogue code", &tool.Request{Tool: "x"}, &tool.Definition{Code: "1"}, false},
		{"builtin", &tool.Request{Tool: "x"}, &tool.Definition{Source: "builtin", Command: []string{"true"}}, true},
		{"wrapped", &tool.Request{Tool: "x"}, &tool.Definition{Source: "wrapped"}, true},
		{"nothing to run", &tool.Request{Tool: "x"}, &tool.Definition{Source: "custom"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := guardSource(test.request, test.entry)
			if !test.refused {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if e := errorOf(t, err); e.Code != tool.UnsupportedSource {
				t.Errorf("got %v", e)
			}
		})
	}
}

func TestGuardWrites(t *testing.T) {
	for _, test := range []struct {
		name                           string
		writes, outputs, project, plan bool
		want                           tool.Code
	}{
		{name: "reads"},
		{name: "reads in a read-only project", project: true},
		{name: "reads in a read-only plan", plan: true},
		{name: "writes", writes: true},
		{name: "writes in a read-only project", writes: true, project: true, want: tool.ReadOnly},
		{name: "writes in a read-only plan", writes: true, plan: true, want: tool.ReadOnly},
		{name: "outputs", writes: true, outputs: true},
		{name: "outputs in a read-only project", outputs: true, project: true, want: tool.ReadOnly},
		{name: "outputs in a read-only plan", writes: true, outputs: true, plan: true, want: tool.ReadOnly},
		{name: "outputs of a tool that only reads", outputs: true, want: tool.InvalidRequest},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &tool.Request{Tool: "x", Plan: tool.Plan{ReadOnly: test.plan}}
			if test.outputs {
				r.Outputs = []string{"out"}
			}
			err := guardWrites(r, test.writes, &tool.Project{ID: "p", ReadOnly: test.project})
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if e := errorOf(t, err); e.Code != test.want {
				t.Errorf("got %v, want %s", e, test.want)
			}
		})
	}
}
