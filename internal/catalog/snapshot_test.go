package catalog

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestEmptySnapshot(t *testing.T) {
	var s Snapshot
	if _, ok := s.Tool("a"); ok {
		t.Error("a tool in an empty catalogue")
	}
	if _, ok := s.Project("a"); ok {
		t.Error("a project in an empty catalogue")
	}
	if s.InputSchema("a") != nil || s.OutputSchema("a") != nil || len(s.List()) != 0 || s.Revision() != "" || len(s.Switches()) != 0 {
		t.Error("an empty catalogue is not empty")
	}
	p := &tool.Project{ID: "p"}
	if got, ok := s.With(p).Project("p"); !ok || got != p {
		t.Error("With on an empty catalogue")
	}
	if _, ok := s.Project("p"); ok {
		t.Error("With changed the snapshot")
	}
}

func TestList(t *testing.T) {
	dir := writeFiles(t, map[string]string{"x.yaml": `kind: Project
id: a
enabled: false
description: An old one.
---
kind: Tool
name: z
command: [z]
---
kind: Tool
name: b
description: Does b.
enabled: false
code: pass
`})
	s, faults, err := LoadDirectory(dir)
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	want := []Summary{
		{Kind: KindTool, Name: "b", Description: "Does b.", Place: dir + "/x.yaml:10"},
		{Kind: KindTool, Name: "z", Enabled: true, Place: dir + "/x.yaml:6"},
		{Kind: KindProject, Name: "a", Description: "An old one.", Place: dir + "/x.yaml:1"},
	}
	if diff := cmp.Diff(want, s.List()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	p, _ := s.Project("a")
	d, _ := s.Tool("b")
	if !p.Disabled || !d.Disabled {
		t.Error("what is not enabled is not disabled")
	}
}

func BenchmarkSnapshotTool(b *testing.B) {
	dir := b.TempDir()
	largeCatalogue(b, dir, 1000, 100)
	s, err := Open(b.Context(), Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, ok := s.Snapshot().Tool("tool_500"); !ok {
				b.Error("tool_500 is missing")
			}
		}
	})
}
