package catalog

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// largeCatalogue writes so many tools, each with schemas of its own, and
// projects, a hundred entries to a file.
func largeCatalogue(tb testing.TB, dir string, tools, projects int) {
	tb.Helper()
	var b strings.Builder
	file := 0
	flush := func() {
		name := filepath.Join(dir, fmt.Sprintf("part-%04d.yaml", file))
		if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
			tb.Fatal(err)
		}
		b.Reset()
		file++
	}
	for i := range tools {
		fmt.Fprintf(&b, `---
kind: Tool
name: tool_%d
description: Read the first lines of a text file of the project.
command: [python3, -I, file_read.py]
input_schema:
  type: object
  required: [path]
  properties:
    path: {type: string}
    count: {type: integer, minimum: 0, maximum: %d}
capability: {writes: false, network: false}
environments: [host, container]
isolation: full
env_from: [API_TOKEN]
limits: {timeout_seconds: 120, memory_bytes: 536870912, concurrency: 8}
`, i, i+1)
		if i%100 == 99 {
			flush()
		}
	}
	for i := range projects {
		fmt.Fprintf(&b, `---
kind: Project
id: project-%d
host_sandbox_path: /srv/projects/project-%d
allow:
  environments: [host]
  inline: {enabled: true, writes: true}
  tools: ["*"]
protect: [.git/hooks, .git/config]
env: {GREETING: hello}
defaults: {timeout_seconds: 30}
maximum: {timeout_seconds: 600, concurrency: 16}
`, i, i)
		if i%100 == 99 {
			flush()
		}
	}
	flush()
}

// BenchmarkLoad is the first load of 5,000 tools and 1,000 projects.
func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	largeCatalogue(b, dir, 5000, 1000)
	for b.Loop() {
		s, faults, err := LoadDirectory(dir)
		if err != nil || len(faults) > 0 {
			b.Fatal(err, faults)
		}
		if len(s.List()) != 6000 {
			b.Fatal("entries are missing")
		}
	}
}

// BenchmarkReload is a load of the same catalogue with one entry changed.
func BenchmarkReload(b *testing.B) {
	dir := b.TempDir()
	largeCatalogue(b, dir, 5000, 1000)
	d := &directory{dir: dir}
	s, _, err := d.refresh(context.Background(), &Snapshot{})
	if err != nil {
		b.Fatal(err)
	}
	extra := filepath.Join(dir, "extra.yaml")
	for i := 0; b.Loop(); i++ {
		text := fmt.Sprintf("kind: Tool\nname: extra_%d\ncommand: [ls]\n", i)
		if err := os.WriteFile(extra, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		s, _ = d.load(s)
	}
}
