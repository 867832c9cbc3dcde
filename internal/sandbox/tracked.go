package sandbox

import (
	"log/slog"

	"github.com/toolworker/toolworker/internal/sandbox/changes"
)

// tracked calls run for s and lists what it changed in the project, whether
// it succeeded or not. Where the project cannot be looked at, the list is empty
// and said to be cut.
func (r *runner) tracked(s *Spec, run func() (*Exit, error)) (*Exit, error) {
	if !s.Writable {
		return run() // the kernel sees to it that there is nothing to list
	}
	before, err := changes.Take(s.Root, changes.Limits{})
	if err != nil {
		r.config.Log.Warn("changes are not listed", slog.Any("error", err))
	} else {
		defer before.Close()
	}
	exit, runErr := run()
	if runErr != nil || exit.StartError != "" {
		return exit, runErr
	}
	if err == nil {
		if exit.Changes, exit.ChangesTruncated, err = before.Since(); err == nil {
			return exit, nil
		}
		r.config.Log.Warn("changes are not listed", slog.Any("error", err))
	}
	exit.ChangesTruncated = true
	return exit, nil
}
