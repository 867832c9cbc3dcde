package engine

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Container is what an execution needs to know of a container.
type Container struct {
	ID     string // 64 hex digits
	Name   string
	Image  string // as the container was created from
	State  State
	User   string
	Labels map[string]string
	// Mounts maps directories of the container to those of the host that are
	// bind-mounted there, and to "" where something else is mounted.
	Mounts map[string]string
	// ReadOnly are those of them that cannot be written to.
	ReadOnly map[string]bool
	// Created is when, zero when the engine does not say.
	Created time.Time
	// OOMKilled: the kernel has ended a process of it for lack of memory.
	OOMKilled bool
}

// State is the state of a container: running, paused, exited and so on.
type State string

// Inspect describes the container with this id or name. The error wraps
// ErrNotFound when there is none.
func (e *Engine) Inspect(ctx context.Context, id string) (*Container, error) {
	r, err := e.client.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, e.wrap(err, "inspect container %s", id)
	}
	return describe(r.Container), nil
}

func describe(r container.InspectResponse) *Container {
	c := &Container{ID: r.ID, Name: strings.TrimPrefix(r.Name, "/"), Mounts: map[string]string{}, ReadOnly: map[string]bool{}}
	if r.Config != nil {
		c.Image, c.User, c.Labels = r.Config.Image, r.Config.User, r.Config.Labels
	}
	if r.State != nil {
		c.State, c.OOMKilled = State(r.State.Status), r.State.OOMKilled
	}
	for _, m := range r.Mounts {
		source := ""
		if m.Type == mount.TypeBind {
			source = path.Clean(m.Source)
		}
		c.Mounts[path.Clean(m.Destination)] = source
		if !m.RW {
			c.ReadOnly[path.Clean(m.Destination)] = true
		}
	}
	if r.HostConfig != nil {
		for dir := range r.HostConfig.Tmpfs {
			c.Mounts[path.Clean(dir)] = ""
		}
	}
	c.Created, _ = time.Parse(time.RFC3339Nano, r.Created)
	return c
}

// Unusable says in a sentence why nothing can run in the container, and what
// to do; "" when it can.
func (c *Container) Unusable() string {
	switch c.State {
	case "running":
		return ""
	case "paused":
		return fmt.Sprintf("container %s is paused: unpause it", c.display())
	case "created":
		return fmt.Sprintf("container %s was never started: start it", c.display())
	case "exited", "dead":
		return fmt.Sprintf("container %s is stopped (%s): start it", c.display(), c.State)
	}
	return fmt.Sprintf("container %s is %s: wait until it runs", c.display(), c.State)
}

func (c *Container) display() string {
	if c.Name != "" {
		return c.Name
	}
	return c.ID[:min(12, len(c.ID))]
}

// HostPath is the host directory that dir, a directory of the container, is
// bind-mounted from; "" when it is not. Mounts that hide each other are
// resolved as the kernel does: the innermost counts.
func (c *Container) HostPath(dir string) string {
	dir = path.Clean(dir)
	for at := dir; ; at = path.Dir(at) {
		if source, ok := c.Mounts[at]; ok {
			if source == "" {
				return ""
			}
			return path.Join(source, strings.TrimPrefix(dir, at))
		}
		if at == "/" || at == "." {
			return ""
		}
	}
}
