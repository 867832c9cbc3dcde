package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
)

// TestSandboxInDefaultContainer runs the tests of the sandbox in a container
// of the engine's default profile, which refuses namespaces: everything that
// concerns level reduced and level none, as root and as another user.
func TestSandboxInDefaultContainer(t *testing.T) {
	c := containertest.Need(t)
	image := containertest.Python(t)
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", filepath.Join(dir, "sandbox.test"), "../internal/sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tests: %v\n%s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]string{"as root": "0:0", "as another user": "1234:1234"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := &container.Config{
				Image: image, User: user, WorkingDir: "/tmp",
				// The other subtest is another user, and time is short.
				Cmd: []string{"/tests/sandbox.test", "-test.v", "-test.timeout=5m", "-test.skip=^(TestCasesAsUnprivilegedUser|TestSoak)$"},
				Env: []string{"TOOLWORKER_TEST_LEVELS=reduced,none", "CI=" + os.Getenv("CI")},
			}
			init, pids := true, int64(3000) // so that no bomb gets beyond its container
			host := &container.HostConfig{Binds: []string{dir + ":/tests:ro"}, NetworkMode: "none", Init: &init, Resources: container.Resources{PidsLimit: &pids}}
			out, status := runToEnd(t, c, config, host)
			if status != 0 {
				t.Errorf("exit status %d\n%s", status, withoutPasses(out))
			}
			if n := strings.Count(out, "--- PASS: TestCase"); n < 30 {
				t.Errorf("only %d cases passed\n%s", n, withoutPasses(out))
			}
			for line := range strings.Lines(out) {
				if strings.Contains(line, "--- SKIP") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// runToEnd runs a container and gives what it said and how it ended.
func runToEnd(t *testing.T, c *client.Client, config *container.Config, host *container.HostConfig) (string, int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()
	made, err := c.ContainerCreate(ctx, client.ContainerCreateOptions{Config: config, HostConfig: host})
	if err != nil {
		t.Fatalf("create container: %v", err)
	}
	t.Cleanup(func() {
		_, _ = c.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	})
	waiting := c.ContainerWait(ctx, made.ID, client.ContainerWaitOptions{Condition: container.WaitConditionNextExit})
	if _, err := c.ContainerStart(ctx, made.ID, client.ContainerStartOptions{}); err != nil {
		t.Fatalf("start container: %v", err)
	}
	var status int64
	select {
	case end := <-waiting.Result:
		status = end.StatusCode
	case err := <-waiting.Error:
		t.Fatalf("wait for container: %v", err)
	}
	logs, err := c.ContainerLogs(context.Background(), made.ID, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatalf("read what the container said: %v", err)
	}
	defer logs.Close()
	var out bytes.Buffer
	if _, err := stdcopy.StdCopy(&out, &out, logs); err != nil {
		t.Fatalf("read what the container said: %v", err)
	}
	return out.String(), status
}

// withoutPasses leaves out the lines that only say that tests began or passed.
func withoutPasses(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if s := strings.TrimSpace(line); !strings.HasPrefix(s, "=== ") && !strings.HasPrefix(s, "--- PASS") {
			b.WriteString(line)
		}
	}
	return b.String()
}
