package container

import (
	"context"
	"errors"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/tool"
)

// place is where a task runs: a container, and a way into it.
type place struct {
	container *engine.Container
	image     string
	workspace string // the root of the project inside
	// bound: the workspace is a bind mount of the task's root.
	bound bool
	// protected: all protected paths that exist are mounted read-only.
	protected bool
	launcher  launcher
	// agent is the agent's path when it is there already, "" when it has to
	// be brought there.
	agent string
	// mode is how the session of this place runs things, "" before there is one.
	mode    string
	release func()
}

// launcher starts commands in one container. Their stderr goes to stderr.
type launcher interface {
	launch(ctx context.Context, argv []string, stderr io.Writer) (conn, error)
	// key tells sessions apart that are not the same user or environment.
	key() string
}

// conn is the standard streams of a command in a container.
type conn interface {
	io.ReadWriteCloser
	CloseWrite() error // ends its stdin
}

// key is that of the place's session.
func (p *place) key() string { return p.container.ID + " " + p.launcher.key() }

// place finds the container of a task. It never returns a place that is nil
// without an error. The error is *unusable when the container cannot be used,
// a *tool.Error when it may not be, else a *tool.Fault.
func (b *Backend) place(ctx context.Context, t *exec.Task) (*place, error) {
	if len(t.Project.Resources) == 0 {
		return nil, tool.Errorf(tool.EnvironmentUnavailable, "project %q has no container resource", t.Project.ID)
	}
	r := t.Project.Resources[0]
	if err := checkWorkspace(r.WorkspaceFolder); err != nil {
		return nil, err
	}
	var p *place
	var err error
	switch {
	case r.Type == tool.DevcontainerFile:
		p, err = b.dev.fromFile(ctx, t, r)
	case r.Type == tool.DevcontainerInstance:
		p, err = b.dev.instance(ctx, t, r)
	case r.ContainerID != "":
		p, err = b.instance(ctx, r)
	case r.Image != "":
		p, err = b.made.get(ctx, t, r)
	default:
		return nil, tool.Errorf(tool.EnvironmentUnavailable, "resource %q of project %q names neither a container nor an image", r.Type, t.Project.ID)
	}
	if err != nil {
		return p, err
	}
	if p.release == nil {
		p.release = func() {}
	}
	p.workspace = r.WorkspaceFolder
	p.image = p.container.Image
	if r.Image != "" {
		p.image = r.Image
	}
	p.bound = b.engine.Local() && sameDirectory(p.container.HostPath(p.workspace), t.Root)
	p.protected = p.bound && mounted(p.container, t, p.workspace)
	return p, nil
}

// mounted reports whether every protected path that exists is a mount of its own.
func mounted(c *engine.Container, t *exec.Task, workspace string) bool {
	for _, protected := range t.Protect {
		if _, err := os.Lstat(path.Join(t.Root, protected)); err != nil {
			continue
		}
		if _, ok := c.ReadOnly[path.Join(workspace, protected)]; !ok {
			return false
		}
	}
	return true
}

// instance is a container that somebody else made.
func (b *Backend) instance(ctx context.Context, r tool.Resource) (*place, error) {
	c, err := b.inspections.usable(ctx, r.ContainerID)
	if err != nil {
		return nil, err
	}
	return &place{container: c, launcher: engineLauncher{b.engine, c.ID}}, nil
}

// checkWorkspace refuses workspaces that lie where the kernel shows things
// that are no files.
func checkWorkspace(dir string) error {
	if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" || strings.IndexByte(dir, 0) >= 0 {
		return tool.Errorf(tool.EnvironmentUnavailable, "workspace_folder %q: expected a clean absolute path below /", dir)
	}
	for _, special := range []string{"/proc", "/sys", "/dev"} {
		if dir == special || strings.HasPrefix(dir, special+"/") {
			return tool.Errorf(tool.EnvironmentUnavailable, "workspace_folder %q: expected a directory that is not below %s", dir, special)
		}
	}
	return nil
}

// sameDirectory reports whether two paths of the host lead to one directory.
func sameDirectory(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// engineLauncher starts commands through the engine's API.
type engineLauncher struct {
	engine *engine.Engine
	id     string
}

func (l engineLauncher) key() string { return "engine" }

func (l engineLauncher) launch(ctx context.Context, argv []string, stderr io.Writer) (conn, error) {
	s, err := l.engine.Start(ctx, l.id, engine.Exec{Argv: argv}, stderr)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// freshness is how long a look at a container counts: a container that
// changes meanwhile is noticed when its session breaks.
const freshness = time.Second

// inspections remembers what was seen of containers a moment ago.
type inspections struct {
	engine *engine.Engine

	mu   sync.Mutex
	seen map[string]inspection
}

type inspection struct {
	container *engine.Container
	at        time.Time
}

// usable gives the running container with this id or name, or an *unusable.
func (i *inspections) usable(ctx context.Context, id string) (*engine.Container, error) {
	now := time.Now()
	i.mu.Lock()
	last, ok := i.seen[id]
	i.mu.Unlock()
	if ok && now.Sub(last.at) < freshness {
		return last.container, nil
	}
	c, err := i.engine.Inspect(ctx, id)
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.seen, id)
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil, unusablef("container %s does not exist: create it, or correct container_id in the catalogue", id)
	case err != nil:
		return nil, err
	case c.Unusable() != "":
		return nil, &unusable{c.Unusable()}
	}
	for old, seen := range i.seen {
		if now.Sub(seen.at) > freshness {
			delete(i.seen, old)
		}
	}
	i.seen[id] = inspection{c, now}
	return c, nil
}

// forget makes the next look a real one.
func (i *inspections) forget(c *engine.Container) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, seen := range i.seen {
		if seen.container.ID == c.ID {
			delete(i.seen, id)
		}
	}
}
