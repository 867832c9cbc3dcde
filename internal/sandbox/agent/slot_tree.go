package agent

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/tool"
)

// killTree kills and reaps every descendant of this process, and says what
// they used. Orphans come to this process, whatever session they made. A
// killed process cannot finish a fork, so what appears between two looks at
// the process table is found by the next.
func killTree() usage {
	var sum usage
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		for {
			var ru syscall.Rusage
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, &ru)
			if err == syscall.ECHILD {
				return sum
			}
			if err == nil && pid > 0 {
				u := usageOf(&ru)
				sum.cpu += u.cpu
				sum.rss = max(sum.rss, u.rss)
			} else if err != syscall.EINTR {
				break
			}
		}
		for _, pid := range descendants() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(pause)
	}
}

// descendants are the pids of all processes below this one.
func descendants() []int {
	children := make(map[int][]int)
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	found := children[os.Getpid()]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found
}

// parentOf reads the fourth field of /proc/<pid>/stat, which follows a name
// that may hold anything.
func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[1]))
	return parent, err == nil
}

// censusInterval is how often processes are counted, and how long a command
// must have run to be counted at all: what a short one can do meanwhile is
// bounded by the container's own limit.
const censusInterval = 50 * time.Millisecond

// census counts the processes below this one now and then, and ends the
// command when there are too many: no limit of the kernel counts per command
// here.
type census struct {
	stopped chan struct{}
	done    sync.WaitGroup
	peak    int64
	hit     tool.Code
}

func startCensus(limit int64, tooMany func()) *census {
	c := &census{stopped: make(chan struct{})}
	c.done.Go(func() {
		tick := time.NewTicker(censusInterval)
		defer tick.Stop()
		for {
			select {
			case <-c.stopped:
				return
			case <-tick.C:
			}
			n := int64(len(descendants()))
			c.peak = max(c.peak, n)
			if limit > 0 && n > limit {
				c.hit = tool.TooManyProcesses
				tooMany()
			}
		}
	})
	return c
}

// stop ends the counting and gives the most processes seen at a time.
func (c *census) stop() (int64, tool.Code) {
	close(c.stopped)
	c.done.Wait()
	return c.peak, c.hit
}
