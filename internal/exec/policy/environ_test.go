package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

// from is a worker's environment.
func from(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if n, v, _ := strings.Cut(p, "="); n == name {
				return v, true
			}
		}
		return "", false
	}
}

func TestEnviron(t *testing.T) {
	worker := from("PATH=/opt/bin", "LANG=de_DE.UTF-8", "TERM=xterm", "SECRET=s3cret", "LD_PRELOAD=/evil.so", "API_TOKEN=t0ken", "EMPTY=")
	base := []string{"LANG=de_DE.UTF-8", "PATH=/opt/bin", "TERM=xterm"}
	for _, tt := range []struct {
		name    string
		tool    *tool.Definition
		project tool.Project
		worker  func(string) (string, bool)
		want    []string
		wantErr string
	}{
		{name: "inline", worker: worker, want: base},
		{name: "nothing of the worker's", worker: from(), want: []string{"LANG=C.UTF-8", "PATH=" + DefaultPath, "TERM=dumb"}},
		{name: "empty is as absent", worker: from("PATH=", "LANG=", "TERM="), want: []string{"LANG=C.UTF-8", "PATH=" + DefaultPath, "TERM=dumb"}},
		{name: "project", worker: worker, project: tool.Project{Env: map[string]string{"GREETING": "hello", "A": ""}},
			want: append([]string{"A=", "GREETING=hello"}, base...)},
		{name: "tool before project", worker: worker, project: tool.Project{Env: map[string]string{"X": "project", "Y": "project"}},
			tool: &tool.Definition{Env: map[string]string{"X": "tool"}}, want: append(append([]string{}, base...), "X=tool", "Y=project")},
		{name: "env_from", worker: worker, tool: &tool.Definition{Env: map[string]string{"API_TOKEN": "old"}, EnvFrom: []string{"API_TOKEN", "EMPTY"}},
			want: append([]string{"API_TOKEN=t0ken", "EMPTY="}, base...)},
		{name: "env_from missing", worker: worker, tool: &tool.Definition{EnvFrom: []string{"API_TOKEN", "NOT_THERE"}},
			wantErr: "environment variable NOT_THERE of env_from is not set for the worker"},
		{name: "operators may set PATH", worker: worker, project: tool.Project{Env: map[string]string{"PATH": "/only"}},
			want: []string{"LANG=de_DE.UTF-8", "PATH=/only", "TERM=xterm"}},
		{name: "name", worker: worker, project: tool.Project{Env: map[string]string{"A=B": "s3cret"}},
			wantErr: `environment variable "A=B": expected a name of A-Z a-z 0-9 _ that does not begin with a digit`},
		{name: "NUL", worker: worker, project: tool.Project{Env: map[string]string{"A": "s3cret\x00"}}, wantErr: "environment variable A has a NUL in its value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Environ(tt.tool, &tt.project, tt.worker)
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want %s", err, tt.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestEnvironLeavesTheCatalogueAlone(t *testing.T) {
	p := &tool.Project{Env: map[string]string{"X": "project"}}
	d := &tool.Definition{Env: map[string]string{"X": "tool"}, EnvFrom: []string{"Y"}}
	if _, err := Environ(d, p, from("Y=y")); err != nil {
		t.Fatal(err)
	}
	if len(p.Env) != 1 || p.Env["X"] != "project" || len(d.Env) != 1 {
		t.Errorf("changed: %v %v", p.Env, d.Env)
	}
}

func TestValidVariable(t *testing.T) {
	for name, want := range map[string]bool{
		"A": true, "_": true, "a_1": true, "PATH": true, "": false, "1A": false, "A-B": false, "A B": false, "Ä": false, "A=": false, "A\x00": false,
	} {
		if got := ValidVariable(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
