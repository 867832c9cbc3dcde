package sandbox

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/toolworker/toolworker/internal/sandbox/guard"
	"github.com/toolworker/toolworker/internal/tool"
)

// guarded runs a tool that may write and restores afterwards what it did to
// protected paths, as far as the kernel did not keep it from that.
func (r *runner) guarded(s *Spec, run func() (*Exit, error)) (*Exit, error) {
	if !s.Writable || len(s.Protect) == 0 {
		return run()
	}
	g, err := guard.New(s.Root, s.Protect, r.level == tool.IsolationFull)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	exit, err := run()
	aside, restoreErr := g.Restore()
	if len(aside) > 0 {
		r.config.Log.Warn("tool wrote to protected paths, set aside",
			slog.String("project", s.Project), slog.String("root", s.Root), slog.String("aside", strings.Join(aside, ", ")))
	}
	if err == nil && restoreErr != nil {
		return nil, fmt.Errorf("sandbox: %w", restoreErr)
	}
	return exit, err
}
