package exec

import (
	"errors"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestResolveChain(t *testing.T) {
	for _, test := range []struct {
		name                         string
		request, entry, plan, fallen tool.Environment
		want                         tool.Resolution
	}{
		{"nobody", "", "", "", "", tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedBySystem}},
		{"project", "", "", "", tool.Container, tool.Resolution{Resolved: tool.Container, DecidedBy: tool.DecidedByProject}},
		{"plan over project", "", "", tool.Host, tool.Container, tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedByPlan}},
		{"catalogue over plan", "", tool.Container, tool.Host, "", tool.Resolution{Resolved: tool.Container, DecidedBy: tool.DecidedByTool}},
		{"request over catalogue", tool.Host, tool.Container, tool.Container, tool.Container, tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedByTool}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &tool.Request{ToolEnv: test.request, Plan: tool.Plan{ExecutionEnvironment: test.plan}}
			got := Resolve(r, &tool.Definition{ToolEnv: test.entry}, &tool.Project{ExecutionEnvironment: test.fallen})
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
	if got := Resolve(&tool.Request{}, nil, &tool.Project{}); got.DecidedBy != tool.DecidedBySystem {
		t.Errorf("inline code: got %+v", got)
	}
}

func TestBackendOfAnEnvironment(t *testing.T) {
	host, container := &fakeBackend{}, &fakeBackend{}
	linked := &tool.Project{ID: "p", Resources: []tool.Resource{{Type: tool.ContainerInstance}}}
	both := &pipeline{Config{Host: host, Container: container}}
	off := &pipeline{Config{Host: host}}

	if got, err := both.backend(tool.Host, linked); got != Backend(host) || err != nil {
		t.Errorf("host: got %v, %v", got, err)
	}
	if got, err := both.backend(tool.Container, linked); got != Backend(container) || err != nil {
		t.Errorf("container: got %v, %v", got, err)
	}
	for _, project := range []*tool.Project{linked, {ID: "p"}} {
		_, err := off.backend(tool.Container, project)
		if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable || e.Message != "container execution is not available" {
			t.Errorf("turned off: got %v", e)
		}
	}
	_, err := both.backend(tool.Container, &tool.Project{ID: "p"})
	if e := errorOf(t, err); e.Code != tool.EnvironmentUnavailable || !strings.Contains(e.Message, `project "p"`) {
		t.Errorf("no resource: got %v", e)
	}
}

// errorOf is err as a *tool.Error, which it has to be.
func errorOf(t *testing.T, err error) *tool.Error {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *tool.Error", err)
	}
	return e
}
