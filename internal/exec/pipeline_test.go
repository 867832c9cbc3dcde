package exec

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestPipelineRunsACommand(t *testing.T) {
	b := newBench(t)
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := ended("{\"n\": 9007199254740993}\n", "warned\xff")
		e.Duration, e.Usage = 1500*time.Millisecond, tool.Usage{CPUMS: 12}
		e.Sandbox = &tool.SandboxMetadata{Isolation: tool.IsolationFull}
		e.Changes = []tool.Change{{Path: "a", Change: tool.Created}}
		return e, nil
	}
	res := b.execute(t, t.Context(), request(with(`{"path": "src/x", "count": 5}`), func(r *tool.Request) { r.Limits.TimeoutSeconds = 90 }))
	if res.Error != nil || res.Fault != nil || res.Status() != tool.StatusSucceeded {
		t.Fatalf("got %v, %v", res.Error, res.Fault)
	}
	if res.RequestID != "r-1" || res.Project != "project-1" || res.PlanID != "plan-7" || res.Tool != "read" || res.Duration != 1500*time.Millisecond {
		t.Errorf("got %+v", res)
	}
	for _, want := range []struct {
		member   string
		payload  *tool.Payload
		text     string
		document bool
	}{
		{"output", res.Output, "{\"n\": 9007199254740993}\n", true},
		{"stdout", res.Stdout, "{\"n\": 9007199254740993}\n", false},
		{"stderr", res.Stderr, "warned\uFFFD", false},
	} {
		if text, document := readPayload(t, want.payload); text != want.text || document != want.document {
			t.Errorf("%s: got %q, document %v", want.member, text, document)
		}
	}
	task := b.host.tasks[0]
	wantEnv := []string{"GREETING=hello", "LANG=C", "PATH=/bin", "SECRET=s3cret", "SHARED=tool", "TERM=xterm", "TOOL=1"}
	if diff := cmp.Diff(wantEnv, task.Env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"cat", "--"}, task.Argv); diff != "" {
		t.Error(diff)
	}
	if task.Root != b.dir || string(task.Input) != `{"path": "src/x", "count": 5}` || task.Writes || task.Network || task.Code != "" || task.Live != nil {
		t.Errorf("task %+v", task)
	}
	m := res.Metadata
	if *m.Environment != (tool.Resolution{Resolved: tool.Host, DecidedBy: tool.DecidedBySystem}) || m.Container != nil || m.Usage.CPUMS != 12 {
		t.Errorf("metadata %+v", m)
	}
	if m.Limits.TimeoutSeconds != 60 || len(m.Limits.Clamped) != 1 || task.Limits.TimeoutSeconds != 60 {
		t.Errorf("limits %+v", m.Limits)
	}
	if *m.Process != (tool.ProcessMetadata{}) || m.Sandbox.Isolation != tool.IsolationFull || len(res.Changes) != 1 {
		t.Errorf("metadata %+v, changes %v", m, res.Changes)
	}
}

func TestPipelineRunsCode(t *testing.T) {
	b := newBench(t)
	b.host.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := printed("{\"looks\": \"like JSON\"}")
		e.Value, e.Truncated = json.RawMessage(`null`), true
		return e, nil
	}
	res := b.execute(t, t.Context(), request(inlineCode("result = None")))
	if res.Error != nil || res.Tool != "sum" || !res.Truncated || res.Stdout != nil || res.Stderr != nil {
		t.Fatalf("got %+v", res)
	}
	if text, document := readPayload(t, res.Output); document || text != `{"looks": "like JSON"}` {
		t.Errorf("output %q, document %v", text, document)
	}
	if value, document := readPayload(t, res.Value); !document || value != "null" {
		t.Errorf("value %q, document %v", value, document)
	}
	if task := b.host.tasks[0]; task.Code != "result = None" || task.Name != "sum" || task.Argv != nil || task.Definition != nil || task.Limits.TimeoutSeconds != 30 {
		t.Errorf("task %+v", task)
	}
}

func TestPipelineDefaultRoot(t *testing.T) {
	b := newBench(t)
	res := b.execute(t, t.Context(), request(in("bare")))
	if res.Error != nil || b.host.tasks[0].Root != b.config.DefaultRoot+"/bare" {
		t.Errorf("got %v, %+v", res.Error, b.host.tasks)
	}
}

// lateCatalogue has its entries only when it is asked once more.
type lateCatalogue struct {
	*catalog.Source
	asked int
	err   error
}

func (c *lateCatalogue) Snapshot() *catalog.Snapshot { return new(catalog.Snapshot) }

func (c *lateCatalogue) LookUp(ctx context.Context, kind catalog.Kind, name string) (*catalog.Snapshot, error) {
	c.asked++
	if c.err != nil {
		return nil, c.err
	}
	return c.Source.LookUp(ctx, kind, name)
}

func TestPipelineLooksUpOnceMore(t *testing.T) {
	b := newBench(t)
	late := &lateCatalogue{Source: b.config.Catalogue.(*catalog.Source)}
	b.config.Catalogue = late
	if res := b.execute(t, t.Context(), request()); res.Error != nil || late.asked != 1 {
		t.Errorf("got %v after %d look-ups", res.Error, late.asked)
	}
	late.err = errors.New("bucket unreachable")
	if res := b.execute(t, t.Context(), request()); !errors.Is(res.Fault, late.err) {
		t.Errorf("got %v, %v", res.Error, res.Fault)
	}
}

func TestNewRefusesWhatIsIncomplete(t *testing.T) {
	b := newBench(t)
	for name, change := range map[string]func(*Config){
		"catalogue":    func(c *Config) { c.Catalogue = nil },
		"host backend": func(c *Config) { c.Host = nil },
		"default root": func(c *Config) { c.DefaultRoot = "/" },
	} {
		config := b.config
		change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
