package shim

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
)

// sampleEvery is how often the tree is looked at. Memory is written at a few
// gigabytes per second at most, so the limit is overrun by some ten megabytes
// before the tree is ended.
const sampleEvery = 5 * time.Millisecond

// sampler holds the limits of memory and processes where no control group
// does. Pages that processes share are counted once for each.
type sampler struct {
	memory, pids         int64 // limits, 0 for none
	peakMemory, peakPIDs int64 // owned by the sampling until it is done
	killPIDs             bool  // end the tree when it has too many processes
	outOfMemory          atomic.Bool
	tooMany              atomic.Bool
	stop                 chan struct{}
	done                 chan struct{}
}

// sample looks at the tree until end is called, and calls exceeded when it
// holds too much memory or, where the kernel does not count the tool's
// processes apart from others of the same user, has too many processes.
func sample(memory, pids int64, killPIDs bool, exceeded func()) *sampler {
	s := &sampler{memory: memory, pids: pids, killPIDs: killPIDs, stop: make(chan struct{}), done: make(chan struct{})}
	if memory == 0 && pids == 0 {
		close(s.done)
		return s
	}
	go func() {
		defer close(s.done)
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			bytes, tasks := treeSize()
			s.peakMemory = max(s.peakMemory, bytes)
			s.peakPIDs = max(s.peakPIDs, tasks)
			if s.memory > 0 && bytes > s.memory && !s.outOfMemory.Swap(true) {
				exceeded()
			}
			if s.pids > 0 && s.killPIDs && tasks > s.pids && !s.tooMany.Swap(true) {
				exceeded()
			}
		}
	}()
	return s
}

// end stops the sampling when the main process has ended, while what it left
// behind is still there: a tool that failed because it could start no more
// processes has them all running.
func (s *sampler) end() {
	close(s.stop)
	<-s.done
	if s.pids > 0 {
		_, tasks := treeSize()
		s.peakPIDs = max(s.peakPIDs, tasks+1)
	}
}

// pidsSlack is by how many the tasks that the kernel counts may exceed those
// that are seen: the supervisor's own threads come and go.
const pidsSlack = 4

// report puts what was seen into the report.
func (s *sampler) report(r *frame.Report) {
	r.OutOfMemory = s.outOfMemory.Load()
	r.MemoryPeak, r.PIDsPeak = s.peakMemory, s.peakPIDs
	r.TooManyProcesses = s.tooMany.Load()
	if s.pids > 0 && !s.killPIDs {
		r.TooManyProcesses = r.PIDsPeak+pidsSlack >= s.pids
	}
}

// treeSize is the resident memory and the number of threads of all descendants.
func treeSize() (bytes, tasks int64) {
	for _, pid := range descendants() {
		proc := "/proc/" + strconv.Itoa(pid)
		b, err := os.ReadFile(proc + "/statm")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b))
		if len(f) < 2 {
			continue
		}
		pages, _ := strconv.ParseInt(f[1], 10, 64)
		bytes += pages * int64(os.Getpagesize())
		tasks += int64(threads(proc))
	}
	return bytes, tasks
}

// threads counts those of a process by the links of its task directory.
func threads(proc string) int {
	var st unix.Stat_t
	if err := unix.Stat(proc+"/task", &st); err != nil || st.Nlink < 2 {
		return 1
	}
	return int(st.Nlink) - 2
}

// descendants are all processes below this one. The init of a pid namespace
// has no others beside it.
func descendants() []int {
	if os.Getpid() == 1 {
		return processes()
	}
	all := childrenOf("self")
	for i := 0; i < len(all); i++ {
		all = append(all, childrenOf(strconv.Itoa(all[i]))...)
	}
	return all
}

// processes are all that /proc shows, but this one.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tasksOf counts the threads of all visible processes of a user, this one's
// included: the kernel counts RLIMIT_NPROC so.
func tasksOf(uid int) int64 {
	count := int64(0)
	for _, pid := range append(processes(), os.Getpid()) {
		proc := "/proc/" + strconv.Itoa(pid)
		var st unix.Stat_t
		if err := unix.Stat(proc+"/task", &st); err == nil && int(st.Uid) == uid {
			count += int64(threads(proc))
		}
	}
	return count
}
