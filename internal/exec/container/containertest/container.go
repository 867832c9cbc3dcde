package containertest

import (
	"context"
	"fmt"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Start starts a container of an image that runs until the test ends, with
// root bind-mounted at /workspace unless it is empty. change adjusts it.
func Start(t testing.TB, image, root string, change func(*container.Config, *container.HostConfig)) string {
	t.Helper()
	id, stop, err := StartContainer(image, root, change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return id
}

// StartContainer is Start for programs that are no tests; stop removes the
// container.
func StartContainer(image, root string, change func(*container.Config, *container.HostConfig)) (id string, stop func(), err error) {
	c, err := reach()
	if err != nil {
		return "", nil, err
	}
	config := &container.Config{Image: image, Cmd: []string{"sleep", "3600"}}
	yes, pids := true, int64(1024)
	host := &container.HostConfig{NetworkMode: "none", Init: &yes}
	host.PidsLimit = &pids // whatever a test starts, this machine is to survive it
	if root != "" {
		host.Binds = []string{root + ":/workspace"}
	}
	if change != nil {
		change(config, host)
	}
	created, err := c.ContainerCreate(context.Background(), client.ContainerCreateOptions{Config: config, HostConfig: host})
	if err != nil {
		return "", nil, fmt.Errorf("create container: %w", err)
	}
	stop = func() {
		_, _ = c.ContainerRemove(context.Background(), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	}
	if _, err := c.ContainerStart(context.Background(), created.ID, client.ContainerStartOptions{}); err != nil {
		stop()
		return "", nil, fmt.Errorf("start container: %w", err)
	}
	return created.ID, stop, nil
}
