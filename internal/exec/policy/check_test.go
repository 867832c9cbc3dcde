package policy

import (
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestCheck(t *testing.T) {
	type state struct {
		request  tool.Request
		tool     *tool.Definition
		project  tool.Project
		resolved tool.Environment
		level    tool.Isolation
	}
	inline := func() *state {
		return &state{
			request:  tool.Request{Pool: "default", Inline: &tool.Inline{Code: "1"}},
			project:  tool.Project{ID: "p", Allow: tool.DefaultAllow()},
			resolved: tool.Host, level: tool.IsolationFull,
		}
	}
	catalogue := func() *state {
		s := inline()
		s.request.Inline, s.request.Tool = nil, "t"
		s.tool = &tool.Definition{Name: "t", Command: []string{"t"}}
		return s
	}
	for _, tt := range []struct {
		name   string
		state  *state
		change func(*state)
		want   string
	}{
		{"inline", inline(), nil, ""},
		{"tool", catalogue(), nil, ""},
		{"inline writes", inline(), func(s *state) { s.request.Inline.Capability.Writes = true }, ""},
		{"inline network", inline(), func(s *state) { s.request.Inline.Capability.Network = true }, `project "p" does not allow inline.network`},
		{"inline network allowed", inline(), func(s *state) {
			s.request.Inline.Capability.Network, s.project.Allow.Inline.Network = true, true
		}, ""},
		{"inline writes not allowed", inline(), func(s *state) {
			s.request.Inline.Capability.Writes, s.project.Allow.Inline.Writes = true, false
		}, `project "p" does not allow inline.writes`},
		{"inline off", inline(), func(s *state) { s.project.Allow.Inline.Enabled = false }, `project "p" does not allow inline.enabled`},
		{"inline off says nothing of tools", catalogue(), func(s *state) { s.project.Allow.Inline = tool.AllowInline{} }, ""},
		{"a tool's network is the operator's own", catalogue(), func(s *state) { s.tool.Capability = tool.Capability{Writes: true, Network: true} }, ""},
		{"inline in a container", inline(), func(s *state) { s.resolved = tool.Container }, ""},
		{"inline not in a container", inline(), func(s *state) {
			s.resolved, s.project.Allow.Inline.Environments = tool.Container, []tool.Environment{tool.Host}
		}, `project "p" does not allow inline.environments container`},
		{"environment", catalogue(), func(s *state) { s.project.Allow.Environments = []tool.Environment{tool.Container} },
			`project "p" does not allow environments host`},
		{"environment of inline", inline(), func(s *state) { s.project.Allow.Environments = nil }, `project "p" does not allow environments host`},
		{"no environment", catalogue(), func(s *state) { s.resolved = "" }, `project "p" does not allow environments `},
		{"tool's environment", catalogue(), func(s *state) { s.tool.Environments = []tool.Environment{tool.Container} },
			`tool "t" does not allow environments host`},
		{"tools", catalogue(), func(s *state) { s.project.Allow.Tools = []string{"other", "T"} }, `project "p" does not allow tools "t"`},
		{"tools by name", catalogue(), func(s *state) { s.project.Allow.Tools = []string{"other", "t"} }, ""},
		{"no tools", catalogue(), func(s *state) { s.project.Allow.Tools = nil }, `project "p" does not allow tools "t"`},
		{"no tools says nothing of inline", inline(), func(s *state) { s.project.Allow.Tools = nil }, ""},
		{"pools", inline(), func(s *state) { s.project.Allow.Pools = []string{"night"} }, `project "p" does not allow pools "default"`},
		{"pools by name", inline(), func(s *state) { s.project.Allow.Pools, s.request.Pool = []string{"night"}, "night" }, ""},
		{"project off", catalogue(), func(s *state) { s.project.Disabled = true }, `project "p" is not enabled`},
		{"tool off", catalogue(), func(s *state) { s.tool.Disabled = true }, `tool "t" is not enabled`},
		{"project's isolation", inline(), func(s *state) { s.project.Isolation, s.level = tool.IsolationFull, tool.IsolationReduced },
			`project "p" demands isolation full, and the worker gives reduced`},
		{"tool's isolation", catalogue(), func(s *state) { s.tool.Isolation, s.level = tool.IsolationReduced, "" },
			`tool "t" demands isolation reduced, and the worker gives none`},
		{"isolation is about the host", catalogue(), func(s *state) {
			s.tool.Isolation, s.level, s.resolved = tool.IsolationFull, tool.IsolationNone, tool.Container
		}, ""},
		{"isolation enough", catalogue(), func(s *state) { s.tool.Isolation, s.project.Isolation = tool.IsolationReduced, tool.IsolationNone }, ""},
		{"nothing is allowed by nobody", inline(), func(s *state) { s.project.Allow = tool.Allow{} }, `project "p" does not allow pools "default"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.state
			if tt.change != nil {
				tt.change(s)
			}
			err := Check(&s.request, s.tool, &s.project, s.resolved, s.level)
			switch {
			case err == nil && tt.want != "":
				t.Errorf("allowed, want %s", tt.want)
			case err != nil && (err.Message != tt.want || err.Code != tool.Forbidden):
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

func TestIsolation(t *testing.T) {
	const none, reduced, full = tool.IsolationNone, tool.IsolationReduced, tool.IsolationFull
	for _, tt := range []struct{ tool, project, worker, want tool.Isolation }{
		{"", "", "", ""}, {"", "", reduced, reduced}, {full, "", reduced, full}, {none, "", reduced, reduced},
		{none, full, "", full}, {reduced, none, none, reduced}, {none, none, none, none},
	} {
		d, p := &tool.Definition{Isolation: tt.tool}, &tool.Project{Isolation: tt.project}
		if got := Isolation(d, p, tt.worker); got != tt.want {
			t.Errorf("%+v: got %q", tt, got)
		}
	}
	if got := Isolation(nil, &tool.Project{Isolation: full}, reduced); got != full {
		t.Errorf("inline: got %q", got)
	}
}

func TestWrites(t *testing.T) {
	for _, tt := range []struct{ declared, project, plan, want bool }{
		{true, false, false, true}, {false, false, false, false}, {true, true, false, false}, {true, false, true, false},
	} {
		r, p := &tool.Request{Plan: tool.Plan{ReadOnly: tt.plan}}, &tool.Project{ReadOnly: tt.project}
		if got := Writes(tt.declared, r, p); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

func TestCheckOutput(t *testing.T) {
	p := &tool.Project{ID: "p", Protect: []string{".git/hooks", ".git/config", ".devcontainer", "a b"}}
	for rel, refused := range map[string]bool{
		".git/hooks": true, ".git/hooks/pre-commit": true, ".git": true, "./.git/../.git/config": true, ".git//hooks/x": true,
		"a b": true, ".devcontainer/x/y": true, ".git/hooks2": false, ".git/HEAD": false, "git/hooks": false, ".githooks": false,
		"build/output.txt": false, "x/.git/hooks": false, "": true, ".": true,
	} {
		err := CheckOutput(p, rel)
		if (err != nil) != refused || err != nil && err.Code != tool.Forbidden {
			t.Errorf("%q: %v", rel, err)
		}
	}
	if err := CheckOutput(&tool.Project{}, ".git/hooks/x"); err != nil {
		t.Errorf("nothing is protected: %v", err)
	}
	want := `output ".git/hooks/x": project "p" protects .git/hooks`
	if err := CheckOutput(p, ".git/hooks/x"); err == nil || err.Message != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
