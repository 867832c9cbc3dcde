// Package containertest gives tests a real container engine, images that need
// no registry, and a static program to put into containers. What it makes
// carries the process's id in its name and is removed by Main.
package containertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/toolworker/toolworker/internal/exec/container/engine"
)

// URL is that of the engine, engine.Off when there is none.
func URL() string { return engine.Locate("") }

var reach = sync.OnceValues(func() (*client.Client, error) {
	if URL() == engine.Off {
		return nil, fmt.Errorf("no container engine: start one, or name it with DOCKER_HOST")
	}
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err = c.Ping(ctx, client.PingOptions{}); err == nil {
		sweep(ctx, c)
	}
	return c, err
})

// sweep removes the images of test processes that were killed.
func sweep(ctx context.Context, c *client.Client) {
	list, err := c.ImageList(ctx, client.ImageListOptions{})
	if err != nil {
		return
	}
	for _, image := range list.Items {
		for _, name := range image.RepoTags {
			rest, ok := strings.CutPrefix(name, family)
			number, _, _ := strings.Cut(rest, "-")
			if _, err := os.Stat("/proc/" + number); ok && os.IsNotExist(err) {
				_, _ = c.ImageRemove(ctx, name, client.ImageRemoveOptions{Force: true})
			}
		}
	}
}

// Need gives a client of the engine. Without one the test is skipped, or
// fails where CI=true.
func Need(t testing.TB) *client.Client {
	t.Helper()
	c, err := reach()
	if err != nil {
		Missing(t, "a container engine: %v", err)
	}
	return c
}

// Missing skips a test that lacks something, or fails it where CI=true.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing: "+format, args...)
	}
	t.Skipf("missing: "+format, args...)
}

// prefix begins the name of everything that this process makes.
var prefix = fmt.Sprintf("%s%d", family, os.Getpid())

const family = "toolworker-test-"

// Worker is a name for a worker of this process.
func Worker(name string) string { return prefix + "-" + name }

// Main runs the tests of a package, removes images and programs afterwards,
// and fails when a test left a container or a volume behind.
func Main(m *testing.M) int {
	code := m.Run()
	if err := CleanUp(); err != nil {
		fmt.Fprintln(os.Stderr, "containertest:", err)
		return max(code, 1)
	}
	return code
}

// CleanUp removes what this process made. The error names containers and
// volumes that should have been gone already.
func CleanUp() error {
	if buildDir != "" {
		if err := os.RemoveAll(buildDir); err != nil {
			return err
		}
	}
	c, err := reach()
	if err != nil {
		return nil //nolint:nilerr // without an engine nothing was made
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var left []string
	containers, err := c.ContainerList(ctx, client.ContainerListOptions{All: true})
	if err != nil {
		return err
	}
	for _, x := range containers.Items {
		if strings.HasPrefix(x.Labels["dev.toolworker.worker"], prefix) || strings.HasPrefix(x.Image, prefix) {
			left = append(left, "container "+x.ID+" of image "+x.Image)
			_, _ = c.ContainerRemove(ctx, x.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	}
	volumes, err := c.VolumeList(ctx, client.VolumeListOptions{})
	if err != nil {
		return err
	}
	for _, x := range volumes.Items {
		if strings.HasPrefix(x.Labels["dev.toolworker.worker"], prefix) {
			left = append(left, "volume "+x.Name)
			_, _ = c.VolumeRemove(ctx, x.Name, client.VolumeRemoveOptions{Force: true})
		}
	}
	for _, name := range images.made() {
		if _, err := c.ImageRemove(ctx, name, client.ImageRemoveOptions{Force: true}); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind: %s", strings.Join(left, ", "))
	}
	return nil
}
