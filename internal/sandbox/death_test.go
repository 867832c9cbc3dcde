package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

// workerEnv makes this binary a worker that runs one tool until it is killed;
// its value is the level, the project and the mark of the tool's processes.
const workerEnv = "TOOLWORKER_TEST_WORKER"

func workerThatIsKilled() {
	f := strings.Fields(os.Getenv(workerEnv))
	r, err := New(Config{Level: tool.Isolation(f[0])})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	out, in := io.Pipe()
	go func() {
		_, err := r.Run(context.Background(), &Spec{
			Root: f[1], Env: []string{"PATH=/usr/bin:/bin"}, Stdout: in,
			Argv: []string{"sh", "-c", "trap '' HUP TERM INT; (setsid sleep " + f[2] + " &); setsid sleep " + f[2] + " & echo ready; while :; do sleep " + f[2] + "; done"},
		})
		fmt.Println("ended", err)
		os.Exit(1)
	}()
	_, _ = io.Copy(os.Stdout, out)
}

func TestWorkerDeathTakesEverySandboxAlong(t *testing.T) {
	killed := map[string]bool{}
	for _, level := range allLevels {
		t.Run(string(level), func(t *testing.T) {
			(&lab{T: t, runner: sharedRunner(t, level), level: level, root: newRoot(t)}).needProcesses()
			m := mark()
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), workerEnv+"="+string(level)+" "+newRoot(t)+" "+m)
			cmd.Stderr = os.Stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(out).ReadString('\n')
			if line != "ready\n" {
				t.Errorf("the worker said %q", line)
			}
			eventually(t, "all processes run", func() bool { return len(processesWith(m)) >= 4 })
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			killed[strconv.Itoa(cmd.Process.Pid)] = true
			eventually(t, "no process is left", func() bool { return len(processesWith(m)) == 0 })
		})
	}
	// The next worker finds what the dead ones could not remove any more.
	r, err := New(Config{Level: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, pattern := range []string{"/sys/fs/cgroup/*/toolworker-*", "/sys/fs/cgroup/memory/*/*/toolworker-*", "/sys/fs/cgroup/toolworker-*"} {
		dirs, _ := filepath.Glob(pattern)
		for _, d := range dirs {
			if f := strings.Split(filepath.Base(d), "-"); len(f) == 5 && killed[f[2]] {
				t.Errorf("%s belongs to a dead worker", d)
			}
		}
	}
}
