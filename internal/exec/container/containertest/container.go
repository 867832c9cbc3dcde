package containertest

import (
	"context"
	"testing"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// Start starts a container of an image that runs until the test ends, with
// root bind-mounted at /workspace unless it is empty. change adjusts it.
func Start(t testing.TB, image, root string, change func(*container.Config, *container.HostConfig)) string {
	t.Helper()
	c := Need(t)
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
		t.Fatalf("create container: %v", err)
	}
	t.Cleanup(func() {
		_, _ = c.ContainerRemove(context.Background(), created.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	})
	if _, err := c.ContainerStart(context.Background(), created.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatalf("start container: %v", err)
	}
	return created.ID
}
