package consume

import (
	"context"
	"errors"
	"time"
)

// MaxLost is how many workers may be lost while running a request, and how
// often the infrastructure may fail it, before it is answered.
const (
	MaxLost   = 5
	MaxFaults = 5
)

// ErrConflict: somebody else wrote the record meanwhile.
var ErrConflict = errors.New("record of attempts was changed meanwhile")

// ErrGone: the server no longer knows the delivery; the message may come again.
var ErrGone = errors.New("delivery is gone")

// Record is what the fleet knows of the starts of one request. It is written
// on give-backs and from the second delivery on: a request that runs through
// has none.
type Record struct {
	// Open counts starts that nobody has ended: lost workers, and the one
	// that is running.
	Open int `json:"open"`
	// Failed counts executions that the request's retry policy sent round again.
	Failed int `json:"failed,omitzero"`
	// Faults counts give-backs for faults of the infrastructure.
	Faults int `json:"faults,omitzero"`
	// Held counts give-backs because the tool was at its bound or paused.
	Held int `json:"held,omitzero"`
	// Started marks a request that must not be started twice.
	Started bool `json:"started,omitzero"`
	// NotBefore is when the next start is due; servers forget their timers.
	NotBefore time.Time `json:"not_before,omitzero"`
}

// Attempts is the fleet's book of starts.
type Attempts interface {
	// Load reads a record and its revision, 0 when there is none.
	Load(ctx context.Context, project, id string) (Record, uint64, error)
	// Save writes a record if its revision is still rev, and returns the new
	// one. ErrConflict when it is not.
	Save(ctx context.Context, project, id string, rec Record, rev uint64) (uint64, error)
}
