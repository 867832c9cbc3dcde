package container

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/devfile"
	"github.com/toolworker/toolworker/internal/sandbox/safefile"
	"github.com/toolworker/toolworker/internal/tool"
)

// maxDevfile bounds a devcontainer.json, in bytes.
const maxDevfile = 1 << 20

// fromFile is the devcontainer that a devcontainer.json of the project
// describes, brought up when it is first needed. The file lies where tools may
// write and can run commands on this machine, so it is checked every time, and
// what the CLI reads is a private copy of what was checked.
func (d *devcontainers) fromFile(ctx context.Context, t *exec.Task, r tool.Resource) (*place, error) {
	if d.cliErr != nil {
		return nil, d.cliErr
	}
	content, err := d.checked(t, r)
	if err != nil {
		return nil, err
	}
	for attempt := 0; ; attempt++ {
		u, err := d.bringUp(ctx, t, r, content)
		if err != nil {
			return nil, err
		}
		if u.workspace != "" && u.workspace != r.WorkspaceFolder {
			return nil, tool.Errorf(tool.EnvironmentUnavailable, "the workspace of %s is %s in its container: say so with workspace_folder in the catalogue, which has %s", r.Path, u.workspace, r.WorkspaceFolder)
		}
		c, err := d.inspections.usable(ctx, u.container)
		var gone *unusable
		if errors.As(err, &gone) && attempt == 0 {
			d.forget(u)
			continue
		}
		if err != nil {
			return nil, err
		}
		return &place{container: c, launcher: devLauncher{d, append(u.args, "--container-id", c.ID)}}, nil
	}
}

// checked reads the file and applies the rules of protocol section 3.
func (d *devcontainers) checked(t *exec.Task, r tool.Resource) ([]byte, error) {
	refuse := func(format string, args ...any) error {
		return tool.Errorf(tool.EnvironmentUnavailable, "%s: %s", r.Path, fmt.Sprintf(format, args...))
	}
	root, err := safefile.OpenRoot(t.Root)
	if err != nil {
		return nil, &tool.Fault{Err: err}
	}
	defer func() { _ = root.Close() }()
	var b bytes.Buffer
	if _, err := root.Copy(&b, filepath.Clean(r.Path), maxDevfile); errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("the project has no such file")
	} else if err != nil {
		return nil, refuse("%v", err)
	}
	if r.SHA256 == "" {
		return nil, refuse("the catalogue has no sha256 for it: a devcontainer.json can run commands on this machine")
	}
	sum := sha256.Sum256(b.Bytes())
	if hex.EncodeToString(sum[:]) != strings.ToLower(r.SHA256) {
		return nil, refuse("it has changed: its sha256 is not that of the catalogue; look at it, then correct the catalogue")
	}
	if !r.Trusted {
		if err := devfile.Check(b.Bytes(), filepath.Dir(filepath.Clean(r.Path))); err != nil {
			return nil, refuse("%v", err)
		}
	}
	return b.Bytes(), nil
}

// up is one configuration brought up, or being so.
type up struct {
	key       string
	ready     chan struct{}
	err       error
	container string
	workspace string   // "" when the CLI did not say
	args      []string // of the CLI, that name the configuration
}

// bringUp runs devcontainer up once for each configuration.
func (d *devcontainers) bringUp(ctx context.Context, t *exec.Task, r tool.Resource, content []byte) (*up, error) {
	key := strings.Join([]string{t.Root, r.Path, r.SHA256}, "\x00")
	d.mu.Lock()
	u := d.ups[key]
	if u == nil {
		u = &up{key: key, ready: make(chan struct{})}
		d.ups[key] = u
		// Others may wait for it: who asked first may lose patience.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), upTimeout)
		d.work.Go(func() {
			defer cancel()
			if u.err = d.up(ctx, u, t.Root, r, content); u.err != nil {
				d.forget(u)
			}
			close(u.ready)
		})
	}
	d.mu.Unlock()
	select {
	case <-u.ready:
		return u, u.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d *devcontainers) forget(u *up) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ups[u.key] == u {
		delete(d.ups, u.key)
	}
}

// upAnswer is the last line that devcontainer up prints.
type upAnswer struct {
	Outcome     string `json:"outcome"`
	Container   string `json:"containerId"`
	Workspace   string `json:"remoteWorkspaceFolder"`
	Message     string `json:"message"`
	Description string `json:"description"`
}

func (d *devcontainers) up(ctx context.Context, u *up, root string, r tool.Resource, content []byte) error {
	copied, err := d.copy(content)
	if err != nil {
		return &tool.Fault{Err: fmt.Errorf("copy devcontainer configuration: %w", err)}
	}
	u.args = []string{"--workspace-folder", root, "--config", filepath.Join(root, r.Path), "--override-config", copied}
	said := &tail{}
	cmd := d.command(ctx, append([]string{"up", "--default-user-env-probe", "none"}, u.args...)...)
	cmd.Stderr = said
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return unusablef("devcontainer up of %s did not end within %v%s", r.Path, upTimeout, said.quoted())
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	var a upAnswer
	if json.Unmarshal(lines[len(lines)-1], &a) != nil {
		return unusablef("devcontainer up of %s failed: %v%s", r.Path, err, said.quoted())
	}
	if a.Outcome != "success" || a.Container == "" {
		return unusablef("devcontainer up of %s failed: %s %s", r.Path, a.Message, a.Description)
	}
	u.container, u.workspace = a.Container, a.Workspace
	return nil
}

// copy puts a configuration where only this worker's user can change it.
func (d *devcontainers) copy(content []byte) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" {
		dir, err := os.MkdirTemp("", "toolworker-devcontainer-")
		if err != nil {
			return "", err
		}
		d.dir = dir
	}
	sum := sha256.Sum256(content)
	dir := filepath.Join(d.dir, hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "devcontainer.json")
	return path, os.WriteFile(path, content, 0o600)
}
