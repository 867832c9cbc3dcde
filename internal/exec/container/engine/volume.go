package engine

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// fillAt is where a volume is mounted while it is filled.
const fillAt = "/fill"

// FileVolume creates a volume that holds one executable file: a copy of path
// called name. The copy is made through a container of image that is created
// and never started, so nothing of the image runs. Nothing is left when it
// fails.
func (e *Engine) FileVolume(ctx context.Context, volume string, labels map[string]string, image, path, name string) (err error) {
	if _, err := e.client.VolumeCreate(ctx, client.VolumeCreateOptions{Name: volume, Labels: labels}); err != nil {
		return e.wrap(err, "create volume %s", volume)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.RemoveVolume(ctx, volume))
		}
	}()
	s := Spec{Image: image, Argv: []string{"none"}, Labels: labels}
	id, err := e.createFiller(ctx, s, volume)
	if errors.Is(err, ErrNotFound) {
		if err := e.pull(ctx, image); err != nil {
			return err
		}
		id, err = e.createFiller(ctx, s, volume)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Remove(ctx, id)) }()
	return e.copyTo(ctx, id, path, name)
}

func (e *Engine) createFiller(ctx context.Context, s Spec, volume string) (string, error) {
	created, err := e.client.ContainerCreate(ctx, client.ContainerCreateOptions{
		Config: &container.Config{Image: s.Image, Entrypoint: s.Argv, Labels: s.Labels},
		HostConfig: &container.HostConfig{
			NetworkMode: "none",
			Mounts:      []mount.Mount{{Type: mount.TypeVolume, Source: volume, Target: fillAt}},
		},
	})
	if err != nil {
		return "", e.wrap(err, "create container of image %s", s.Image)
	}
	return created.ID, nil
}

// copyTo streams a file into a container that was never started.
func (e *Engine) copyTo(ctx context.Context, id, path, name string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open executable: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("stat executable: %w", err)
	}
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: info.Size()})
		if err == nil {
			_, err = io.Copy(t, file)
		}
		_ = w.CloseWithError(errors.Join(err, t.Close()))
	}()
	defer func() { _ = r.Close() }()
	_, err = e.client.CopyToContainer(ctx, id, client.CopyToContainerOptions{DestinationPath: fillAt, Content: r})
	return e.wrap(err, "copy executable into volume")
}
