package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/policy"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

func TestArgvMakesFilesBesideTheEntryAbsolute(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"tool.py", "sub/data.json", "python3", "-x", "run.sh"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ in, want []string }{
		{[]string{"python3", "-I", "tool.py"}, []string{"python3", "-I", dir + "/tool.py"}},
		{[]string{"./run.sh", "sub/data.json"}, []string{dir + "/run.sh", dir + "/sub/data.json"}},
		{[]string{"run.sh", "python3"}, []string{dir + "/run.sh", dir + "/python3"}},
		{[]string{"cat", "-x", "sub", "none", "", "../tool.py", "/etc/passwd", "$(tool.py)"},
			[]string{"cat", "-x", "sub", "none", "", "../tool.py", "/etc/passwd", "$(tool.py)"}},
	} {
		if diff := cmp.Diff(test.want, argv(test.in, dir)); diff != "" {
			t.Errorf("%q: %s", test.in, diff)
		}
		if diff := cmp.Diff(test.in, argv(test.in, "")); diff != "" {
			t.Errorf("%q of a bucket: %s", test.in, diff)
		}
	}
}

func TestNewRefusesWhatCannotBeExposed(t *testing.T) {
	runner, err := sandbox.New(sandbox.Config{Require: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	defer runner.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"relative", "/no/such/directory", file, "/", ""} {
		if _, err := New(Config{Runner: runner, Expose: []string{dir}}); err == nil || !strings.Contains(err.Error(), "exposed directory") {
			t.Errorf("%q: got %v", dir, err)
		}
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no runner: got no error")
	}
}

// task runs argv, or code when there is no argv.
func task(root, code string, argv ...string) *exec.Task {
	t := &exec.Task{
		Request: &tool.Request{}, Project: &tool.Project{ID: "p"}, Root: root, Input: []byte("{}"),
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}, Argv: argv, Code: code, Name: "t", Limits: policy.BuiltInCommand,
	}
	if len(argv) == 0 {
		t.Limits = policy.BuiltInCode
	}
	return t
}

func TestEntryDirectoryAndExposedOnesAreVisibleAndReadOnly(t *testing.T) {
	entry, exposed := t.TempDir(), t.TempDir()
	for _, dir := range []string{entry, exposed} {
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data"), []byte(dir), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	script := "import sys\nfor f in sys.argv[1:]:\n  print(open(f).read())\n  try: open(f, 'w'); print('written')\n  except OSError: pass\n"
	if err := os.WriteFile(filepath.Join(entry, "tool.py"), []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	b := newBackend(t, tool.IsolationFull, Config{Expose: []string{exposed}})
	work := task(projectDir(t), "", "python3", "-I", "tool.py", "data", exposed+"/data")
	work.Definition = &tool.Definition{Dir: entry}
	e, err := b.Run(t.Context(), work)
	if err != nil {
		t.Fatal(err)
	}
	if got := text(t, e.Stdout); e.ExitCode != 0 || got != entry+"\n"+exposed+"\n" {
		t.Errorf("exit code %d, stdout %q, stderr %q", e.ExitCode, got, text(t, e.Stderr))
	}
	work.Definition = &tool.Definition{Dir: filepath.Join(entry, "gone")}
	if e, err = b.Run(t.Context(), work); err != nil || e.StartError == "" || strings.Contains(e.StartError, entry) {
		t.Errorf("entry directory gone: got %+v, %v", e, err)
	}
}

func TestWithoutRoomForOutputIsAFault(t *testing.T) {
	b := newBackend(t, tool.IsolationNone, Config{SpoolDir: filepath.Join(t.TempDir(), "gone")})
	for _, work := range []*exec.Task{
		task(projectDir(t), "print('x' * 300_000)"),
		task(projectDir(t), "", "python3", "-c", "print('x' * 300_000)"),
		task(projectDir(t), "", "python3", "-c", "import sys; print('x' * 300_000, file=sys.stderr)"),
	} {
		var fault *tool.Fault
		if e, err := b.Run(t.Context(), work); !errors.As(err, &fault) || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %+v, %v, want a fault", e, err)
		}
	}
}

func TestClosedRunnerIsAFault(t *testing.T) {
	runner, err := sandbox.New(sandbox.Config{Require: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Config{Runner: runner})
	if err != nil {
		t.Fatal(err)
	}
	if err := runner.Close(); err != nil {
		t.Fatal(err)
	}
	var fault *tool.Fault
	if _, err := b.Run(t.Context(), task(projectDir(t), "1")); !errors.As(err, &fault) || !errors.Is(err, sandbox.ErrClosed) {
		t.Errorf("got %v, want a fault", err)
	}
}

func TestIsolationThatCannotBeHadIsNotStarted(t *testing.T) {
	b := newBackend(t, tool.IsolationNone, Config{})
	work := task(projectDir(t), "print(1)")
	work.Isolation = tool.IsolationFull
	e, err := b.Run(t.Context(), work)
	if err != nil || e.StartError == "" || e.Combined != nil && e.Combined.Size() > 0 {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestNoDescriptorsAreLeft runs tools of every kind and counts.
func TestNoDescriptorsAreLeft(t *testing.T) {
	// What is kept ready has descriptors of its own, more or fewer of them.
	runner, err := sandbox.New(sandbox.Config{Level: tool.IsolationNone, Require: tool.IsolationNone, Warm: sandbox.WarmOff})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Close() })
	b, err := New(Config{Runner: runner})
	if err != nil {
		t.Fatal(err)
	}
	root := projectDir(t)
	once := func() {
		for _, work := range []*exec.Task{
			task(root, "print('x' * 300_000)"), task(root, "1/0"), task(root, "", "no-such-command"), task(root, "", "cat"),
		} {
			e, err := b.Run(t.Context(), work)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range []tool.Content{e.Combined, e.Stdout, e.Stderr} {
				if c != nil {
					_ = c.Close()
				}
			}
		}
	}
	once()
	before := descriptors(t)
	for range 10 {
		once()
	}
	// A supervisor goes a moment after its answer.
	after := descriptors(t)
	for deadline := time.Now().Add(10 * time.Second); after > before && time.Now().Before(deadline); after = descriptors(t) {
		time.Sleep(5 * time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors became %d", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func text(t *testing.T, c tool.Content) string {
	t.Helper()
	r, err := c.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}
