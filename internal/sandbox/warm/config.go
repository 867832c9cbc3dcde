package warm

import (
	"cmp"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"
)

// Config bounds a Pool. A zero member means the default.
type Config struct {
	// MaxSlots bounds the slots of all kinds: 16 per CPU.
	MaxSlots int
	// MaxPerKind bounds those of one kind: 4 per CPU.
	MaxPerKind int
	// MaxUses is after how many runs a slot is replaced: 1,000. 1 means that
	// slots are used once, and that so many are kept ready as run at a time.
	MaxUses int
	// MaxAge is after which time a slot is replaced: 10 minutes, and up to a
	// fifth less, so that not all go at once.
	MaxAge time.Duration
	// Idle is how long a slot waits to be used before it is ended: 1 minute.
	Idle time.Duration
	// Patience is how long an execution waits for a busy slot: 8 ms, about as
	// long as a cold start takes.
	Patience time.Duration
	// MayGrow tells whether there is memory for one more slot; nil: always.
	MayGrow func() bool
	Log     *slog.Logger // nil discards
}

// WithDefaults returns c with every unset member that has a default set.
func (c Config) WithDefaults() Config {
	c.MaxSlots = cmp.Or(c.MaxSlots, 16*runtime.NumCPU())
	c.MaxPerKind = min(cmp.Or(c.MaxPerKind, 4*runtime.NumCPU()), c.MaxSlots)
	c.MaxUses = cmp.Or(c.MaxUses, 1000)
	c.MaxAge = cmp.Or(c.MaxAge, 10*time.Minute)
	c.Idle = cmp.Or(c.Idle, time.Minute)
	c.Patience = cmp.Or(c.Patience, 8*time.Millisecond)
	if c.MayGrow == nil {
		c.MayGrow = func() bool { return true }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// lifetime is the age at which a slot that is born now is replaced.
func (c *Config) lifetime() time.Duration {
	return c.MaxAge - time.Duration(rand.Int64N(int64(c.MaxAge/5)+1))
}
