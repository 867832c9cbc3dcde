package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

// warmWorkerEnv makes this binary a worker with something ready, until it is
// killed; its value is the level, the way and the project.
const warmWorkerEnv = "TOOLWORKER_TEST_WARM_WORKER"

func warmWorkerThatIsKilled() {
	f := strings.Fields(os.Getenv(warmWorkerEnv))
	r, err := New(Config{Level: tool.Isolation(f[0]), Warm: Warm(f[1])})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	err = r.(Preparer).Prepare(context.Background(), &Spec{Project: "p", Root: f[2], Code: []byte{}, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// What waits for runs dies with the worker too.
func TestWorkerDeathTakesWhatIsReadyAlong(t *testing.T) {
	for _, level := range allLevels {
		for _, way := range []Warm{WarmFork, WarmSpawn} {
			if !tried(level) {
				continue
			}
			t.Run(string(level)+" "+string(way), func(t *testing.T) {
				t.Parallel()
				cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
				cmd.Env = append(os.Environ(), warmWorkerEnv+"="+string(level)+" "+string(way)+" "+newRoot(t))
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				if line, _ := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
					t.Errorf("the worker said %q", line)
				}
				pids := descendantsOf(cmd.Process.Pid)
				if len(pids) < 2 {
					t.Errorf("processes %v: expected a supervisor and what it holds ready", pids)
				}
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				_ = cmd.Wait()
				eventually(t, "no process is left", func() bool {
					for _, pid := range pids {
						if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
							return false
						}
					}
					return true
				})
			})
		}
	}
}
