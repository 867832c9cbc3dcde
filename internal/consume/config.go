package consume

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// DefaultDrain is how long running tools may go on after the end of fetching.
const DefaultDrain = 30 * time.Second

// Config is what a Consumer is made of. Everything up to Rules is required.
type Config struct {
	Source        Source
	Executor      Executor
	Answers       Answers
	DeadLetters   DeadLetters
	Attempts      Attempts
	Cancellations Cancellations
	Finder        Finder
	Inputs        Inputs
	Rules         Rules

	// Live takes live events; nil: nobody gets any.
	Live Live
	// Pools that are served; none means tool.DefaultPool.
	Pools []string
	// Slots is how many requests run at once; 0 means 2 x CPUs.
	Slots int
	// ProjectSlots is how many of one project may; 0: all. A project's own
	// bound counts as well.
	ProjectSlots int
	// Worker is this worker's name in results.
	Worker string
	// Prefix is that of the fleet's subjects.
	Prefix string
	// DrainTimeout is how long running tools may go on when fetching has
	// ended; 0 means DefaultDrain, below 0 not at all.
	DrainTimeout time.Duration
	// Heartbeat is the interval of heartbeats; 0 means Heartbeat.
	Heartbeat time.Duration

	Spans   trace.Spans
	Metrics *trace.Metrics
	Log     *slog.Logger // nil discards
}

// WithDefaults returns c with every unset member that has a default set.
func (c Config) WithDefaults() Config {
	if len(c.Pools) == 0 {
		c.Pools = []string{tool.DefaultPool}
	}
	c.Slots = cmp.Or(c.Slots, 2*runtime.NumCPU())
	c.DrainTimeout = max(0, cmp.Or(c.DrainTimeout, DefaultDrain))
	c.Heartbeat = cmp.Or(c.Heartbeat, Heartbeat)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) validate() error {
	if c.Source == nil || c.Executor == nil || c.Answers == nil || c.DeadLetters == nil || c.Attempts == nil ||
		c.Cancellations == nil || c.Finder == nil || c.Inputs == nil || c.Rules == nil {
		return errors.New("consumer: expected all of its parts")
	}
	if c.Slots < 1 {
		return fmt.Errorf("concurrency %d: expected at least 1", c.Slots)
	}
	if c.ProjectSlots < 0 {
		return fmt.Errorf("project concurrency %d: expected at least 0", c.ProjectSlots)
	}
	for _, pool := range c.Pools {
		if err := tool.CheckName("pool", pool); err != nil {
			return err
		}
	}
	return nil
}
