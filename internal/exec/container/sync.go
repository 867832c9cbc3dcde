package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/sandbox/safefile"
	"github.com/toolworker/toolworker/internal/tool"
)

// maxOutput bounds an output where no file_size_bytes is in force, in bytes.
const maxOutput = 1 << 30

// Sync implements exec.Syncer: it brings the outputs of a task from the
// container to the host. Where the workspace is the project's own directory
// they are there already.
func (b *Backend) Sync(ctx context.Context, t *exec.Task) error {
	if len(t.Outputs) == 0 {
		return nil
	}
	p, s, err := b.enter(ctx, t)
	if err != nil {
		return syncError(err)
	}
	defer p.release()
	if p.bound {
		return nil
	}
	root, err := safefile.OpenRoot(t.Root)
	if err != nil {
		return &tool.Fault{Err: err}
	}
	defer func() { _ = root.Close() }()
	limit := t.Limits.FileSizeBytes
	if limit == 0 {
		limit = maxOutput
	}
	for i, o := range t.Outputs {
		inside, ok := strings.CutPrefix(o.ContainerPath, p.workspace+"/")
		onHost, ok2 := strings.CutPrefix(o.HostPath, t.Root+"/")
		if !ok || !ok2 {
			return tool.Errorf(tool.SyncFailed, "/outputs/%d: not below the root", i)
		}
		if err := fetch(ctx, s, p, root, inside, onHost, limit); err != nil {
			var f *tool.Fault
			if errors.As(err, &f) {
				return err
			}
			return tool.Errorf(tool.SyncFailed, "/outputs/%d: %s: %v", i, path.Base(inside), err)
		}
	}
	return nil
}

// syncError is a file that cannot be had because its container cannot.
func syncError(err error) error {
	var u *unusable
	if errors.As(err, &u) {
		return tool.Errorf(tool.SyncFailed, "outputs: %s", u.reason)
	}
	return err
}

// fetch streams one file: the host's is replaced when all of it has come, and
// stays as it was when anything is wrong.
func fetch(ctx context.Context, from session, p *place, root *safefile.Root, inside, onHost string, limit int64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	read := make(chan error, 1)
	go func() {
		_, err := from.readFile(ctx, p, inside, limit, w)
		_ = w.CloseWithError(err) // nil is the end of the file
		read <- err
	}()
	_, writeErr := root.Write(onHost, r, limit)
	_ = r.CloseWithError(errors.New("nobody writes it any more"))
	if writeErr != nil {
		cancel()
	}
	readErr := <-read
	switch {
	case readErr != nil && writeErr != nil && !errors.Is(writeErr, readErr):
		return fmt.Errorf("write: %w", writeErr)
	case readErr != nil:
		return readErr
	}
	return writeErr
}

func (s *agentSession) readFile(ctx context.Context, p *place, rel string, limit int64, w io.Writer) (int64, error) {
	return s.Session.ReadFile(ctx, p.workspace, rel, limit, w)
}
