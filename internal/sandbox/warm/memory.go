package warm

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Memory tells whether there is memory for more slots. Its methods may be
// called from several goroutines.
type Memory struct {
	// Reserve is the share of the machine's memory that slots leave alone.
	Reserve float64

	mu   sync.Mutex
	read time.Time
	free bool
}

// memoryAge is for how long an answer is good.
const memoryAge = 200 * time.Millisecond

// Free reports whether more than the reserve is available, of the machine's
// memory and of the worker's own control group. Where nothing is known, it is.
func (m *Memory) Free() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); now.Sub(m.read) > memoryAge {
		m.read = now
		m.free = m.machine() && m.group()
	}
	return m.free
}

func (m *Memory) enough(available, total int64) bool {
	return total <= 0 || float64(available) > m.Reserve*float64(total)
}

func (m *Memory) machine() bool {
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return true
	}
	return m.enough(meminfo(b, "MemAvailable:"), meminfo(b, "MemTotal:"))
}

// meminfo is a value of /proc/meminfo in kibibytes, 0 when it is missing.
func meminfo(b []byte, name string) int64 {
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		if f := strings.Fields(s.Text()); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// group looks at what a container's control group allows, version 2 or 1.
// Inside a container these are the paths of its own group.
func (m *Memory) group() bool {
	for _, files := range [][2]string{
		{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
		{"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"},
	} {
		limit, ok := number(files[0])
		used, ok2 := number(files[1])
		if ok && ok2 && !m.enough(limit-used, limit) {
			return false
		}
	}
	return true
}

func number(file string) (int64, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil // "max" is none
}
