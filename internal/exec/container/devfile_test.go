package container_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	backend "github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

// devfileLab is a lab whose project has a devcontainer.json with this content.
func devfileLab(t *testing.T, b *backend.Backend, config string) *lab {
	t.Helper()
	root := newRoot(t)
	write(t, root, ".devcontainer/devcontainer.json", config)
	sum := sha256.Sum256([]byte(config))
	return &lab{Backend: b, root: root, project: project(tool.Resource{
		Type: tool.DevcontainerFile, Path: ".devcontainer/devcontainer.json", SHA256: hex.EncodeToString(sum[:]),
	})}
}

func TestDevcontainerFileIsBroughtUpOnce(t *testing.T) {
	needCLI(t)
	c, image := containertest.Need(t), containertest.Busybox(t)
	worker := containertest.Worker("devfile")
	config := fmt.Sprintf(`{
	// the project's own
	"image": %q,
	"workspaceFolder": "/workspace",
	"workspaceMount": "source=${localWorkspaceFolder},target=/workspace,type=bind",
	"remoteEnv": {"GREETING": "hello"},
	"containerEnv": {"SECRET": "${localEnv:TOOLWORKER_TEST_SECRET}"},
}`, image)
	t.Setenv("TOOLWORKER_TEST_SECRET", "of-the-worker")
	l := devfileLab(t, newBackend(t, func(c *backend.Config) { c.Worker = worker }), config)
	r := l.run(t, l.sh("echo $GREETING $SECRET; pwd"))
	t.Cleanup(func() {
		if r.Container.ContainerID != "" {
			_, _ = c.ContainerRemove(context.Background(), r.Container.ContainerID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		}
	})
	if r.stdout != "hello\n/workspace\n" || r.Container.Mode != "agent" {
		t.Fatalf("%+v, %q, %q, %q", r.Container, r.stdout, r.stderr, r.StartError)
	}
	again := l.run(t, l.sh("echo again"))
	if again.stdout != "again\n" || again.Container.ContainerID != r.Container.ContainerID {
		t.Errorf("%+v, %q", again.Container, again.stdout)
	}
	// A file that changes afterwards is not used any more.
	write(t, l.root, ".devcontainer/devcontainer.json", config+" ")
	refused(t, l, "changed")
}

// refused runs a task that the rules of devcontainer files stand against.
func refused(t *testing.T, l *lab, word string) {
	t.Helper()
	_, err := l.Run(t.Context(), l.task("true"))
	var own *tool.Error
	if !errors.As(err, &own) || own.Code != tool.EnvironmentUnavailable || !strings.Contains(own.Message, word) {
		t.Errorf("%v, want environment_unavailable with %q", err, word)
	}
}

func TestDevcontainerFileThatMayNotBeUsed(t *testing.T) {
	needCLI(t)
	b := newBackend(t, nil)
	dir := newRoot(t)
	l := devfileLab(t, b, fmt.Sprintf(`{"image": "x", "initializeCommand": "echo ran > %s/ran"}`, dir))
	refused(t, l, "initializeCommand")
	if content(t, dir, "ran") != "" {
		t.Error("the command ran")
	}
	l = devfileLab(t, b, `{"image": "x"}`)
	l.project.Resources[0].SHA256 = ""
	refused(t, l, "sha256")
	l.project.Resources[0].SHA256 = strings.Repeat("0", 64)
	refused(t, l, "changed")
	l.project.Resources[0].Path = "../devcontainer.json"
	refused(t, l, "../devcontainer.json")
	l.project.Resources[0].Path = "missing.json"
	refused(t, l, "no such file")
}

func TestDevcontainerThatCannotBeBroughtUp(t *testing.T) {
	needCLI(t)
	l := devfileLab(t, newBackend(t, nil), `{"image": "localhost/toolworker-no-such-image:1"}`)
	if r := l.run(t, l.task("true")); !strings.Contains(r.StartError, "devcontainer up") {
		t.Errorf("%+v", r.Ending)
	}
}

func TestMissingCLIFailsEveryUseAtOnce(t *testing.T) {
	t.Parallel()
	b := newBackend(t, func(c *backend.Config) { c.Devcontainer = "no-such-devcontainer-cli" })
	for _, r := range []tool.Resource{
		{Type: tool.DevcontainerInstance, ContainerID: "x"},
		{Type: tool.DevcontainerFile, Path: "devcontainer.json"},
	} {
		l := &lab{Backend: b, project: project(r), root: newRoot(t)}
		got := l.run(t, l.task("true"))
		if !strings.Contains(got.StartError, "no-such-devcontainer-cli") || !strings.Contains(got.StartError, "install") {
			t.Errorf("%s: %q", r.Type, got.StartError)
		}
	}
	if r := b.Report(t.Context()); r.DevcontainerProblem == nil || r.Version.Version == "" {
		t.Errorf("%+v", r)
	}
}
