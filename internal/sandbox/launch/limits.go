package launch

import (
	"math"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/tool"
)

// Limits are the resource limits that stand for l, without memory and
// processes, which a control group holds better. The kernel measures the cpu
// time of this limit by sampling; where something counts it exactly (counted)
// the limit leaves it the decision.
func Limits(l tool.Limits, counted bool) []Limit {
	limits := []Limit{{Resource: unix.RLIMIT_CORE}}
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
