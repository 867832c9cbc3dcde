package launch

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/tool"
)

// NoCore is the limit under which the kernel neither writes a core dump nor
// starts the machine's handler of core dumps, outside of every sandbox and as
// root: one byte. Zero keeps it from the first only; it is what remains where
// this process may not set more.
func NoCore() Limit {
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &now); err != nil || now.Max == 0 {
		return Limit{Resource: unix.RLIMIT_CORE}
	}
	return Limit{unix.RLIMIT_CORE, 1, 1}
}

// Limits are the resource limits that stand for l, without memory and
// processes, which a control group holds better. The kernel measures the cpu
// time of this limit by sampling; where something counts it exactly (counted)
// the limit leaves it the decision.
func Limits(l tool.Limits, counted bool) []Limit {
	limits := []Limit{NoCore()}
	add := func(resource int, n int64) {
		if n > 0 {
			limits = append(limits, Limit{resource, uint64(n), uint64(n)})
		}
	}
	if l.CPUSeconds > 0 {
		// The signal of the soft limit says which limit it was; who ignores
		// it is killed a second later.
		s := uint64(math.Ceil(l.CPUSeconds))
		if counted {
			s += 1 + s/8
		}
		limits = append(limits, Limit{unix.RLIMIT_CPU, s, s + 1})
	}
	add(unix.RLIMIT_FSIZE, l.FileSizeBytes)
	add(unix.RLIMIT_NOFILE, l.OpenFiles)
	return limits
}
