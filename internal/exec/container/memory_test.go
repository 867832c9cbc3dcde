package container_test

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/toolworker/toolworker/internal/exec/container/containertest"
)

// 64 tools write at once: what they write is spooled to disk, so this
// process stays small. The engine passes on some 100 MiB a second.

func TestCase34OutputOf64ToolsLeavesTheWorkerSmall(t *testing.T) { writeMuch(t, 4<<20) }

func TestSoakFiftyMiBOf64ToolsLeaveTheWorkerSmall(t *testing.T) {
	if os.Getenv("TOOLWORKER_SOAK") == "" {
		t.Skip("writes 3 GiB: set TOOLWORKER_SOAK=1")
	}
	writeMuch(t, 50<<20)
}

func writeMuch(t *testing.T, each int64) {
	root := newRoot(t)
	l := instance(t, newBackend(t, nil), containertest.Start(t, containertest.Busybox(t), root, nil), root)
	l.run(t, l.task("true"))
	forgetPeak(t)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			task := l.sh(fmt.Sprintf("head -c %d /dev/zero; echo more", each))
			task.Limits.MaxOutputBytes, task.Limits.TimeoutSeconds = each, 600
			e, err := l.Run(t.Context(), task)
			if err != nil || e.ExitCode != 0 || e.Stdout.Size() != each || !e.Truncated {
				t.Errorf("%+v, %v", e, err)
				return
			}
			_ = e.Stdout.Close()
			_ = e.Stderr.Close()
		})
	}
	wg.Wait()
	if peak := peakMiB(t); peak > 200 {
		t.Errorf("%d MiB resident at most, want under 200", peak)
	} else {
		t.Logf("%d MiB resident at most", peak)
	}
}

// forgetPeak starts the peak anew: earlier tests had peaks of their own (proc(5), clear_refs).
func forgetPeak(t *testing.T) {
	t.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
}

// peakMiB is the most memory that this process had resident since forgetPeak.
func peakMiB(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
