package exec

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestPipelineWithoutAContainerBackend(t *testing.T) {
	b := newBench(t)
	b.config.Container = nil
	for _, r := range []*tool.Request{request(inContainer), request(calling("boxed")), request(in("bare"), inContainer)} {
		res := b.execute(t, t.Context(), r)
		if res.Error == nil || res.Error.Code != tool.EnvironmentUnavailable || res.Error.Message != "container execution is not available" {
			t.Errorf("got %v", res.Error)
		}
		if e := res.Metadata.Environment; e == nil || e.Resolved != tool.Container {
			t.Errorf("environment %+v", e)
		}
	}
}

func TestPipelineMapsPathsOfAContainer(t *testing.T) {
	b := newBench(t)
	b.container.run = func(_ context.Context, task *Task) (*Ending, error) {
		e := ended(`{"at": "/workspace/out.txt", "n": 1e2, "other": "/usr/lib"}`, "/workspace/err")
		e.Container = &tool.ContainerMetadata{ContainerID: "box", WorkspaceFolder: "/workspace"}
		return e, nil
	}
	if err := os.WriteFile(filepath.Join(b.dir, "out.txt"), []byte("42"), 0o600); err != nil {
		t.Fatal(err)
	}
	res := b.execute(t, t.Context(), request(calling("write"), inContainer, with(`{"path": "`+b.dir+`/src", "l": ["`+b.dir+`", "/usr"]}`),
		func(r *tool.Request) { r.Outputs = []string{"/workspace/out.txt"} }))
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	task := b.container.tasks[0]
	if got := string(task.Input); got != `{"path":"/workspace/src","l":["/workspace","/usr"]}` {
		t.Errorf("input %s", got)
	}
	if text, document := readPayload(t, res.Output); !document || strings.TrimSpace(text) != `{"at":"`+b.dir+`/out.txt","n":1e2,"other":"/usr/lib"}` {
		t.Errorf("output %s, document %v", text, document)
	}
	if text, _ := readPayload(t, res.Stdout); !strings.Contains(text, `"/workspace/out.txt"`) {
		t.Errorf("stdout %s", text)
	}
	if text, _ := readPayload(t, res.Stderr); text != "/workspace/err" {
		t.Errorf("stderr %s", text)
	}
	want := []tool.File{{
		ContainerPath: "/workspace/out.txt", HostPath: b.dir + "/out.txt", SizeBytes: 2,
		SHA256: "73475cb40a568e8da8a045ced110137e159f890ac4da883b6b17dc651b3a8049",
	}}
	if diff := cmp.Diff(want, res.Files); diff != "" {
		t.Error(diff)
	}
	if res.Metadata.Container.ContainerID != "box" || res.Metadata.Environment.DecidedBy != tool.DecidedByTool {
		t.Errorf("metadata %+v", res.Metadata)
	}
}

func TestPipelineMapsTextAndValueOfAContainer(t *testing.T) {
	b := newBench(t)
	b.container.run = func(context.Context, *Task) (*Ending, error) {
		e := printed("/workspace/a\n/workspaces/b\nsee /workspace/c\r\n/workspace\r\n/workspace/d")
		e.Value = json.RawMessage(`["/workspace/v"]`)
		return e, nil
	}
	res := b.execute(t, t.Context(), request(inlineCode("1"), inContainer))
	want := b.dir + "/a\n/workspaces/b\nsee /workspace/c\r\n" + b.dir + "\r\n" + b.dir + "/d"
	if text, document := readPayload(t, res.Output); text != want || document {
		t.Errorf("output %q", text)
	}
	if value, document := readPayload(t, res.Value); strings.TrimSpace(value) != `["`+b.dir+`/v"]` || !document {
		t.Errorf("value %q", value)
	}
}

// TestPipelineMapsAnAlias: the operator names the root through a symlink, and
// inside the sandbox it has only its real name.
func TestPipelineMapsAnAlias(t *testing.T) {
	b := newBench(t)
	alias := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(b.dir, alias); err != nil {
		t.Fatal(err)
	}
	b.config.Catalogue = newCatalogue(t, strings.ReplaceAll(benchCatalogue, "DIR", alias))
	if err := os.WriteFile(filepath.Join(b.dir, "out"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := request(calling("write"), with(`{"a_path": "`+alias+`/x", "b_path": "`+b.dir+`/y"}`), func(r *tool.Request) { r.Outputs = []string{alias + "/out"} })
	res := b.execute(t, t.Context(), r)
	if res.Error != nil {
		t.Fatal(res.Error)
	}
	if task := b.host.tasks[0]; string(task.Input) != `{"a_path":"`+b.dir+`/x","b_path":"`+b.dir+`/y"}` || task.Root != b.dir {
		t.Errorf("task %s in %s", task.Input, task.Root)
	}
	if len(res.Files) != 1 || res.Files[0].HostPath != alias+"/out" {
		t.Errorf("files %+v", res.Files)
	}
	res = b.execute(t, t.Context(), request(inContainer, with(`{"a_path": "`+alias+`/x", "b_path": "`+b.dir+`/y"}`)))
	if res.Error != nil || string(b.container.tasks[0].Input) != `{"a_path":"/workspace/x","b_path":"/workspace/y"}` {
		t.Errorf("in a container: %v, %s", res.Error, b.container.tasks[0].Input)
	}
}
