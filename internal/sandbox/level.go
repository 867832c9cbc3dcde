package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/room"
	"github.com/toolworker/toolworker/internal/tool"
)

// tryTimeout bounds one try of a level.
const tryTimeout = 10 * time.Second

// chooseLevel sets the level that the configuration asks for, or the
// strongest that works. Nothing is concluded from version numbers: a level
// works when Python ran at it.
func (r *runner) chooseLevel(ctx context.Context) error {
	levels := []tool.Isolation{tool.IsolationFull, tool.IsolationReduced}
	if r.config.Level != "" {
		levels = []tool.Isolation{r.config.Level}
	}
	var reasons []error
	for _, l := range levels {
		if !l.AtLeast(r.config.Require) {
			break
		}
		err := r.try(ctx, l)
		if err == nil {
			r.level = l
			return nil
		}
		reasons = append(reasons, fmt.Errorf("isolation %s does not work here: %w (hint: %s)", l, err, hint(l)))
	}
	return errors.Join(reasons...)
}

// try runs a program that does nothing at a level.
func (r *runner) try(ctx context.Context, l tool.Isolation) error {
	dir, err := os.MkdirTemp("", "toolworker-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	exit, err := r.runCold(ctx, &Spec{Root: dir, Code: []byte("pass"), Name: "probe"}, l)
	switch {
	case err != nil:
		return err
	case exit.StartError != "":
		return errors.New(exit.StartError)
	case exit.Code != 0:
		return fmt.Errorf("interpreter %s ended with status %d", r.interpreter.Path, exit.Code)
	}
	r.noProc = slices.Contains(exit.Sandbox.Missing, room.MissingProc)
	return nil
}

// Leveled is implemented by runners that confine everything at one level.
type Leveled interface {
	Level() tool.Isolation
}

// Level implements Leveled.
func (r *runner) Level() tool.Isolation { return r.level }

// limitsNeedProc reports whether only a supervisor could hold the limits of
// processes in a room, and the rooms of this machine have no /proc: the
// supervisor of a single run sees its tree all the same, a room that is kept
// ready does not.
func (r *runner) limitsNeedProc() bool {
	return r.noProc && !(r.bounds(cgroup.Memory) && r.bounds(cgroup.PIDs))
}
