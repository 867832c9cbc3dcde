package sandbox

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// someUser is a user with no rights of its own.
const someUser = 24680

// TestCasesAsUnprivilegedUser runs every other test of this package once more
// as a user who may do nothing special.
func TestCasesAsUnprivilegedUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is the run as an unprivileged user")
	}
	dir, err := os.MkdirTemp("/tmp", "toolworker-unprivileged-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	binary := filepath.Join(dir, "sandbox.test")
	copyFile(t, "/proc/self/exe", binary)
	tmp := filepath.Join(dir, "tmp")
	for _, err := range []error{os.Chmod(dir, 0o755), os.Chmod(binary, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, someUser, someUser)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.count=1", "-test.run=^(Test|Example)", "-test.skip="+skipped())
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=" + tmp, "HOME=" + tmp, levelsEnv + "=" + os.Getenv(levelsEnv)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: someUser, Gid: someUser}}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Errorf("as user %d: %v\n%s", someUser, err, failures(out.String()))
	}
	if n := strings.Count(out.String(), "--- PASS: TestCase"); n < 20 {
		t.Errorf("only %d cases ran as user %d", n, someUser)
	}
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "--- SKIP") {
			t.Log(strings.TrimSpace(line))
		}
	}
}

// skipped leaves out what this run was told to leave out.
func skipped() string {
	if testing.Short() {
		return "^Fuzz"
	}
	return "^$"
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Close(); err != nil {
		t.Fatal(err)
	}
}

// failures leaves out what only says that tests began or passed.
func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if t := strings.TrimSpace(line); !strings.HasPrefix(t, "=== ") && !strings.HasPrefix(t, "--- PASS") {
			b.WriteString(line)
		}
	}
	return b.String()
}
