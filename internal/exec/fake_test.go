package exec

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/tool"
)

// fakeBackend notes its tasks and ends them as run says; by default with
// nothing written and exit code 0.
type fakeBackend struct {
	tasks []*Task
	run   func(ctx context.Context, t *Task) (*Ending, error)
}

func (b *fakeBackend) Run(ctx context.Context, t *Task) (*Ending, error) {
	b.tasks = append(b.tasks, t)
	if b.run == nil {
		return ended("", ""), nil
	}
	return b.run(ctx, t)
}

// ended is the ending of a command that succeeded.
func ended(stdout, stderr string) *Ending {
	return &Ending{Stdout: tool.Bytes(stdout), Stderr: tool.Bytes(stderr)}
}

// printed is the ending of code that succeeded.
func printed(output string) *Ending { return &Ending{Combined: tool.Bytes(output)} }

// newCatalogue reads YAML entries as an operator would write them.
func newCatalogue(t *testing.T, yaml string) *catalog.Source {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "entries.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	source, err := catalog.Open(t.Context(), catalog.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Err(); err != nil {
		t.Fatal(err)
	}
	return source
}

// readPayload is the text of a payload, and whether it is a document.
func readPayload(t *testing.T, p *tool.Payload) (string, bool) {
	t.Helper()
	if p == nil {
		t.Fatal("the payload is absent")
	}
	r, err := p.Content.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(all)) != p.Content.Size() {
		t.Fatalf("content of %d bytes says it has %d", len(all), p.Content.Size())
	}
	return string(all), p.Document
}

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }
