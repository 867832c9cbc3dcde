package sandbox

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/tool"
)

// guarded runs a tool that may write and restores afterwards what it did to
// protected paths, as far as the kernel did not keep it from that. The tool
// that is run has for its protected paths what these stand for.
func (r *runner) guarded(s *Spec, run func(s *Spec) (*Exit, error)) (exit *Exit, err error) {
	if !s.Writable || len(s.Protect) == 0 {
		return run(s)
	}
	watch, err := guard.New(s.Root, s.Protect, r.level == tool.IsolationFull)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	defer func() {
		aside, restoreErr := watch.Restore()
		if len(aside) > 0 {
			r.config.Log.Warn("tool wrote to protected paths, set aside",
				slog.String("project", s.Project), slog.String("root", s.Root), slog.String("aside", strings.Join(aside, ", ")))
		}
		if err == nil && restoreErr != nil {
			exit, err = nil, fmt.Errorf("sandbox: %w", restoreErr)
		}
	}()
	real := *s
	real.Protect = watch.Paths()
	return run(&real)
}
