package container

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/toolworker/toolworker/internal/exec/container/engine"
)

// Config is what a Backend is made of. Worker is required.
type Config struct {
	// Engine is the engine's URL, from engine.Locate.
	Engine string
	// Devcontainer is the devcontainer CLI: a name of PATH or a path.
	Devcontainer string
	// Worker is the name that containers and volumes of this worker carry.
	Worker string
	// Executable is put into containers: a static binary that calls
	// agent.Main. The default is this program's own.
	Executable string
	// Alive says whether another worker that made a container still serves.
	// Without it, containers of workers on other machines are left to their
	// own end.
	Alive func(worker string) bool
	// Slots is how many tools this worker runs at once.
	Slots int
	// Idle is how long a container of ours may be of no use before it is
	// removed; Lifetime how old one may become.
	Idle, Lifetime time.Duration
	// SpoolDir takes large outputs, "" is the directory for temporary files.
	SpoolDir string
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// WithDefaults returns c with every unset member that has a default set.
func (c Config) WithDefaults() Config {
	c.Engine = engine.Locate(c.Engine)
	c.Devcontainer = cmp.Or(c.Devcontainer, "devcontainer")
	c.Executable = cmp.Or(c.Executable, "/proc/self/exe")
	c.Slots = cmp.Or(c.Slots, 2*runtime.NumCPU())
	c.Idle = cmp.Or(c.Idle, 10*time.Minute)
	c.Lifetime = cmp.Or(c.Lifetime, 24*time.Hour)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// ErrOff is what New gives when there is no engine to use.
var ErrOff = errors.New("container execution is turned off")

func (c Config) validate() error {
	switch {
	case c.Engine == engine.Off:
		return ErrOff
	case c.Worker == "":
		return errors.New("container backend: expected the worker's name")
	case c.Slots < 1:
		return fmt.Errorf("container backend: %d slots: expected at least one", c.Slots)
	case c.Idle < 0, c.Lifetime < 0:
		return fmt.Errorf("container backend: idle time %v, lifetime %v: expected positive durations", c.Idle, c.Lifetime)
	}
	return nil
}
