package shim

import (
	"sync/atomic"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
)

// sampleEvery is how often the tree is looked at. Memory is written at a few
// gigabytes per second at most, so the limit is overrun by some ten megabytes
// before the tree is ended.
const sampleEvery = 5 * time.Millisecond

// sampler holds the limits of memory and processes where no control group
// does. Pages that processes share are counted once for each.
type sampler struct {
	proc                 *procfs
	memory, pids         int64 // limits, 0 for none
	peakMemory, peakPIDs int64 // owned by the sampling until it is done
	killPIDs             bool  // end the tree when it has too many processes
	outOfMemory          atomic.Bool
	tooMany              atomic.Bool
	stop                 chan struct{}
	done                 chan struct{}
}

// sample looks at the tree until end is called, and ends it when it holds too
// much memory or, where the kernel does not count, has too many processes.
func (s *Setup) sample(proc *procfs) *sampler {
	sampler := &sampler{
		proc: proc, memory: s.MemoryBytes, pids: s.PIDs, killPIDs: s.Uncounted, stop: make(chan struct{}), done: make(chan struct{}),
	}
	sampler.start()
	return sampler
}

func (s *sampler) start() {
	if s.memory == 0 && s.pids == 0 {
		close(s.done)
		return
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
			bytes, tasks := s.proc.treeSize()
			s.peakMemory = max(s.peakMemory, bytes)
			s.peakPIDs = max(s.peakPIDs, tasks)
			if s.memory > 0 && bytes > s.memory && !s.outOfMemory.Swap(true) {
				s.proc.strike()
			}
			if s.pids > 0 && s.killPIDs && tasks > s.pids && !s.tooMany.Swap(true) {
				s.proc.strike()
			}
		}
	}()
}

// end stops the sampling when the main process has ended, while what it left
// behind is still there: a tool that failed because it could start no more
// processes has them all running.
func (s *sampler) end() {
	close(s.stop)
	<-s.done
	if s.pids > 0 {
		_, tasks := s.proc.treeSize()
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
