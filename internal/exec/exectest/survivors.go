package exectest

import (
	"bytes"
	"fmt"
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
	for _, p := range processesWith(t, token(task)) {
		t.Errorf("a process of the tool is alive: %s", p)
	}
}

// processesWith finds the processes of this machine, other than zombies, that
// have the token in their command line or their environment.
func processesWith(t *testing.T, token string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, dir := range dirs {
		for _, name := range []string{"cmdline", "environ"} {
			// What vanished meanwhile, or belongs to somebody else, is not ours.
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err == nil && bytes.Contains(text, []byte(token)) {
				found = append(found, fmt.Sprintf("%s %s: %q", dir, name, text))
			}
		}
	}
	return found
}
