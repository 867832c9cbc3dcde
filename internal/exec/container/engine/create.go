package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// Spec is a container to create. It gets an init, no capabilities, no new
// privileges, the engine's own seccomp profile, a read-only root with a
// writable /tmp, and vanishes when it ends.
type Spec struct {
	Image  string
	Argv   []string // of its main process, whatever the image says
	User   string   // uid:gid
	Dir    string   // working directory
	Labels map[string]string
	// Binds are directories of the host, Volumes names of volumes (mounted
	// read-only), both by the directory of the container they are mounted at.
	Binds   []Bind
	Volumes map[string]string
	Network bool // the engine's default network, otherwise none
	// Bounds of everything in the container together.
	Memory  int64 // bytes, no swap beside
	CPUs    float64
	PIDs    int64
	TmpSize int64 // bytes
}

// Bind is a directory or file of the host, seen in a container.
type Bind struct {
	Source, Target string
	ReadOnly       bool
}

const (
	removeTimeout = 30 * time.Second
	pullTimeout   = 10 * time.Minute
)

// Run creates a container and starts it. An image that the engine does not
// have is pulled. Nothing is left of a container that could not be started.
func (e *Engine) Run(ctx context.Context, s Spec) (*Container, error) {
	id, err := e.create(ctx, s)
	if errors.Is(err, ErrNotFound) {
		if err := e.pull(ctx, s.Image); err != nil {
			return nil, err
		}
		id, err = e.create(ctx, s)
	}
	if err != nil {
		return nil, err
	}
	if _, err := e.client.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
		return nil, errors.Join(e.wrap(err, "start container of image %s", s.Image), e.Remove(ctx, id))
	}
	c, err := e.Inspect(ctx, id)
	if err != nil {
		return nil, errors.Join(err, e.Remove(ctx, id))
	}
	return c, nil
}

func (e *Engine) create(ctx context.Context, s Spec) (string, error) {
	created, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: s.Image, Entrypoint: s.Argv, User: s.User, WorkingDir: s.Dir, Labels: s.Labels,
			StopSignal: "SIGKILL", Healthcheck: &container.HealthConfig{Test: []string{"NONE"}},
		},
		HostConfig: s.hostConfig(),
	})
	if err != nil {
		return "", e.wrap(err, "create container of image %s", s.Image)
	}
	return created.ID, nil
}

func (s *Spec) hostConfig() *container.HostConfig {
	yes := true
	h := &container.HostConfig{
		Init: &yes, AutoRemove: true,
		CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"},
		NetworkMode: "none", IpcMode: "private", LogConfig: container.LogConfig{Type: "none"},
		ReadonlyRootfs: true,
		Tmpfs:          map[string]string{"/tmp": fmt.Sprintf("rw,exec,nosuid,nodev,mode=1777,size=%d", s.TmpSize)},
		Resources: container.Resources{
			Memory: s.Memory, MemorySwap: s.Memory, NanoCPUs: int64(s.CPUs * 1e9), PidsLimit: &s.PIDs,
		},
	}
	if s.Network {
		h.NetworkMode = "default"
	}
	for _, b := range s.Binds {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeBind, Source: b.Source, Target: b.Target, ReadOnly: b.ReadOnly})
	}
	for target, name := range s.Volumes {
		h.Mounts = append(h.Mounts, mount.Mount{Type: mount.TypeVolume, Source: name, Target: target, ReadOnly: true})
	}
	return h
}

func (e *Engine) pull(ctx context.Context, image string) error {
	ctx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	r, err := e.client.ImagePull(ctx, image, client.ImagePullOptions{})
	if err == nil {
		err = r.Wait(ctx)
		_ = r.Close()
	}
	if err == nil {
		return nil
	}
	if client.IsErrConnectionFailed(err) {
		return e.wrap(err, "pull image %s", image)
	}
	return fmt.Errorf("image %s: %w on the engine, and it cannot be pulled: %s", image, ErrNotFound, reason(err))
}

// Remove ends and removes a container with the volumes that only it has. One
// that is gone already, or on its way, is no error. It works under a context
// of its own.
func (e *Engine) Remove(ctx context.Context, id string) error {
	ctx, cancel := bounded(ctx, removeTimeout)
	defer cancel()
	_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if err = e.wrap(err, "remove container %s", id); err == nil || errors.Is(err, ErrNotFound) {
		return nil
	}
	c, inspect := e.Inspect(ctx, id)
	if errors.Is(inspect, ErrNotFound) || (inspect == nil && c.State == "removing") {
		return nil
	}
	return err
}
