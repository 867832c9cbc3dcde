package agent

import (
	"bytes"
	"os"
	"strconv"
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// counters are the files in which the container's control group counts how
// often a limit was hit; "" where there is none to see.
type counters struct {
	oomFile, oomKey   string
	pidsFile, pidsKey string

	mu   sync.Mutex
	last counts // when somebody looked last: only failures are worth a look
}

// counts are what the files said at one moment.
type counts struct{ oom, pids int64 }

// findCounters looks where version 2 and version 1 of control groups have them.
func findCounters() *counters {
	c := &counters{}
	for _, f := range []string{"/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control"} {
		if _, err := os.Stat(f); err == nil {
			c.oomFile, c.oomKey = f, "oom_kill"
			break
		}
	}
	for _, f := range []string{"/sys/fs/cgroup/pids.events", "/sys/fs/cgroup/pids/pids.events"} {
		if _, err := os.Stat(f); err == nil {
			c.pidsFile, c.pidsKey = f, "max"
			break
		}
	}
	c.last = c.read()
	return c
}

func (c *counters) read() counts {
	return counts{oom: countIn(c.oomFile, c.oomKey), pids: countIn(c.pidsFile, c.pidsKey)}
}

// countIn reads a line "key n" of a file; 0 when there is none.
func countIn(file, key string) int64 {
	if file == "" {
		return 0
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == key {
			n, _ := strconv.ParseInt(string(f[1]), 10, 64)
			return n
		}
	}
	return 0
}

// hit names the limit that made a run fail, as far as can be told. The
// counters are the whole container's: they only support what the run's own
// end suggests.
func (c *counters) hit(x *sandbox.Exit, l tool.Limits) (tool.Code, string) {
	c.mu.Lock()
	before, now := c.last, c.read()
	c.last = now
	c.mu.Unlock()
	switch {
	case x.Signal == "SIGKILL" && now.oom > before.oom:
		return tool.OutOfMemory, "memory of the container"
	case l.MemoryBytes > 0 && x.Usage.MaxRSSBytes >= l.MemoryBytes/10*9:
		return tool.OutOfMemory, "memory_bytes"
	case now.pids > before.pids:
		return tool.TooManyProcesses, "processes of the container"
	}
	return "", ""
}
