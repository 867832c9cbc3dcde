package container_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/tool"
)

// unbound is a lab whose workspace is a directory of the container alone.
func unbound(t *testing.T) *lab {
	t.Helper()
	return instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), "", nil), newRoot(t))
}

func (l *lab) outputs(task *exec.Task, names ...string) *exec.Task {
	task.Writes = true
	for _, n := range names {
		task.Outputs = append(task.Outputs, exec.Output{HostPath: l.root + "/" + n, ContainerPath: "/workspace/" + n})
	}
	return task
}

func TestOutputsComeToTheHost(t *testing.T) {
	t.Parallel()
	l := unbound(t)
	if os.Getuid() == 0 {
		if err := os.Chown(l.root, 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	write(t, l.root, "old.txt", "from before")
	task := l.outputs(l.sh(`mkdir -p build/deep && dd if=/dev/zero bs=1M count=3 of=build/deep/out.bin 2>/dev/null && chmod 777 build/deep/out.bin && echo new > old.txt`),
		"build/deep/out.bin", "old.txt")
	if r := l.run(t, task); r.ExitCode != 0 {
		t.Fatalf("%+v, %q", r.Ending, r.stderr)
	}
	if err := l.Sync(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if got := content(t, l.root, "old.txt"); got != "new\n" {
		t.Errorf("old.txt holds %q", got)
	}
	for name, want := range map[string]fs.FileMode{"build": 0o700 | fs.ModeDir, "build/deep": 0o700 | fs.ModeDir, "build/deep/out.bin": 0o600} {
		info, err := os.Stat(filepath.Join(l.root, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
		if uid := info.Sys().(*syscall.Stat_t).Uid; os.Getuid() == 0 && uid != 12345 {
			t.Errorf("%s belongs to %d", name, uid)
		}
	}
	if info, err := os.Stat(filepath.Join(l.root, "build/deep/out.bin")); err != nil || info.Size() != 3<<20 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCase22OutputsThatAreNoFiles(t *testing.T) {
	t.Parallel()
	l := unbound(t)
	write(t, l.root, "out", "from before")
	for name, script := range map[string]string{
		"missing":          "true",
		"directory":        "mkdir out",
		"fifo":             "mkfifo out",
		"symlink":          "ln -s /etc/passwd out",
		"dangling symlink": "ln -s nowhere out",
		"looping symlink":  "ln -s out out",
		"through a link":   "ln -s /etc dir; ln -s passwd out",
		"hard link":        "echo x > a; ln a out",
	} {
		r := l.run(t, l.outputs(l.sh("rm -rf out dir a; "+script)))
		if r.ExitCode != 0 {
			t.Errorf("%s: %+v %q", name, r.Ending, r.stderr)
		}
		err := l.Sync(t.Context(), l.outputs(l.sh(""), "out"))
		var own *tool.Error
		if !errors.As(err, &own) || own.Code != tool.SyncFailed || !strings.Contains(own.Message, "/outputs/0") {
			t.Errorf("%s: %v, want sync_failed", name, err)
		}
	}
	if got := content(t, l.root, "out"); got != "from before" {
		t.Errorf("the host's file holds %q", got)
	}
}

func TestOutputsWithoutAgent(t *testing.T) {
	t.Parallel()
	l := instance(t, newBackend(t, withoutAgent), containertest.Start(t, containertest.Busybox(t), "", nil), newRoot(t))
	if r := l.run(t, l.outputs(l.sh("mkdir d; echo x > d/out; ln -s d/out link; mkfifo fifo; head -c 2000 /dev/zero > large; ln d/out hard; ln d/out hard2; echo one > one"))); r.ExitCode != 0 {
		t.Fatalf("%+v %q", r.Ending, r.stderr)
	}
	task := l.outputs(l.sh(""), "one")
	if err := l.Sync(t.Context(), task); err != nil || content(t, l.root, "one") != "one\n" {
		t.Errorf("%v, %q", err, content(t, l.root, "one"))
	}
	for _, name := range []string{"link", "fifo", "large", "hard", "missing", "d"} {
		task := l.outputs(l.sh(""), name)
		task.Limits.FileSizeBytes = 1000
		var own *tool.Error
		if err := l.Sync(t.Context(), task); !errors.As(err, &own) || own.Code != tool.SyncFailed || content(t, l.root, name) != "" {
			t.Errorf("%s: %v, want sync_failed", name, err)
		}
	}
}

func TestOutputThatIsTooLarge(t *testing.T) {
	t.Parallel()
	l := unbound(t)
	write(t, l.root, "out", "from before")
	if r := l.run(t, l.outputs(l.sh("dd if=/dev/zero bs=1M count=2 of=out"))); r.ExitCode != 0 {
		t.Fatalf("%+v %q", r.Ending, r.stderr)
	}
	task := l.outputs(l.sh(""), "out")
	task.Limits.FileSizeBytes = 1 << 20
	var own *tool.Error
	if err := l.Sync(t.Context(), task); !errors.As(err, &own) || own.Code != tool.SyncFailed {
		t.Errorf("%v, want sync_failed", err)
	}
	if got := content(t, l.root, "out"); got != "from before" {
		t.Errorf("the host's file holds %d bytes", len(got))
	}
	left, err := filepath.Glob(l.root + "/.*")
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSymlinkSwappedDuringTheSyncGetsNowhere(t *testing.T) {
	t.Parallel()
	l := unbound(t)
	swap := l.outputs(l.sh(`mkdir real; echo inside > real/out; echo ready; while :; do ln -sfn /etc dir; rm -f dir; mkdir dir; echo inside > dir/passwd; rm -rf dir; done`))
	ready := started(swap)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = l.Run(ctx, swap)
	}()
	<-ready
	for range 300 {
		err := l.Sync(t.Context(), l.outputs(l.sh(""), "dir/passwd"))
		if got := content(t, l.root, "dir/passwd"); strings.Contains(got, "root") {
			t.Fatalf("a file of outside arrived: %q, %v", got, err)
		}
	}
	cancel()
	<-ended
}

func TestSymlinkOnTheHostIsNotFollowed(t *testing.T) {
	t.Parallel()
	l := unbound(t)
	outside := newRoot(t)
	if err := os.Symlink(outside, filepath.Join(l.root, "dir")); err != nil {
		t.Fatal(err)
	}
	if r := l.run(t, l.outputs(l.sh("mkdir dir; echo x > dir/out"))); r.ExitCode != 0 {
		t.Fatalf("%+v", r.Ending)
	}
	var own *tool.Error
	if err := l.Sync(t.Context(), l.outputs(l.sh(""), "dir/out")); !errors.As(err, &own) || own.Code != tool.SyncFailed {
		t.Errorf("%v, want sync_failed", err)
	}
	if got := content(t, outside, "out"); got != "" {
		t.Errorf("outside holds %q", got)
	}
}

func TestBoundWorkspaceNeedsNoSync(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	task := l.outputs(l.sh("echo x > out"), "out")
	if r := l.run(t, task); r.ExitCode != 0 {
		t.Fatalf("%+v", r.Ending)
	}
	before, err := os.Stat(filepath.Join(root, "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(filepath.Join(root, "out")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced: %v", err)
	}
}
