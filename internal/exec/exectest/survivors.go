package exectest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/exec"
)

// holdLock is Python that makes its process, and all that it forks, hold the
// lock that noSurvivors asks for.
const holdLock = `
import fcntl
_lock = open("` + lockFile + `")
fcntl.flock(_lock, fcntl.LOCK_SH)
import os
os.set_inheritable(_lock.fileno(), True)
`

// noSurvivors fails the test if a process of the task is alive. The answer of
// a backend leaves only after the tree is dead, so this asks once.
func (s *Subject) noSurvivors(t *testing.T, task *exec.Task) {
	t.Helper()
	lock, err := os.Open(filepath.Join(s.Root, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("a process of the tool still holds its lock: %v", err)
	}
	noProcesses(t, task)
}

// noProcesses fails the test if a process of this machine, other than a
// zombie, has the token of the task in its command line or its environment.
func noProcesses(t *testing.T, task *exec.Task) {
	t.Helper()
	token := token(task)
	if token == "" {
		return
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		for _, name := range []string{"cmdline", "environ"} {
			// What vanished meanwhile, or belongs to somebody else, is not ours.
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && bytes.Contains(text, []byte(token)) {
				t.Errorf("a process of the tool is alive: %s %s: %q", dir, name, text)
			}
		}
	}
}
