package warm

import (
	"encoding/binary"
	"fmt"
	"time"
)

const (
	reportSize = 40
	// maxUsage is more than any run can use; what is above it is a lie.
	maxCPU    = 1000 * time.Hour
	maxMemory = 1 << 50
	maxTasks  = 1 << 22
)

// Report is how a run ended. Its tree is dead.
type Report struct {
	Number uint64
	// Status is the wait status of the child.
	Status uint32
	// Started: the code had its turn.
	Started bool
	// Cancelled: the server ended it because it was told to.
	Cancelled bool
	// OutOfMemory, TooManyProcesses: the server ended it for one of the
	// limits of Settings.
	OutOfMemory, TooManyProcesses bool
	// Soiled: the run left something behind that the next one would see.
	Soiled bool
	// Ended: the server had to be ended together with the run.
	Ended  bool
	CPU    time.Duration // of the whole tree
	MaxRSS int64         // bytes, of the largest process
	// Tasks are the threads that were alive when the child failed, itself
	// included; 0 when it did not fail.
	Tasks int64
}

// parseReport checks what came over a server's socket: the children have it
// too, until they take a request.
func parseReport(b []byte) (*Report, error) {
	if len(b) != reportSize {
		return nil, fmt.Errorf("report of %d bytes: expected %d", len(b), reportSize)
	}
	le := binary.LittleEndian
	flags := le.Uint32(b[12:])
	if flags >= 1<<5 {
		return nil, fmt.Errorf("report with flags %#x: expected at most 0x1f", flags)
	}
	r := &Report{
		Number: le.Uint64(b), Status: le.Uint32(b[8:]),
		Started: flags&1 != 0, Cancelled: flags&2 != 0, OutOfMemory: flags&4 != 0, TooManyProcesses: flags&8 != 0, Soiled: flags&16 != 0,
		CPU: time.Duration(le.Uint64(b[16:])), MaxRSS: int64(le.Uint64(b[24:])), Tasks: int64(le.Uint64(b[32:])),
	}
	if r.CPU < 0 || r.CPU > maxCPU || r.MaxRSS < 0 || r.MaxRSS > maxMemory {
		return nil, fmt.Errorf("report of %d ns and %d bytes: not possible", r.CPU, r.MaxRSS)
	}
	if r.Tasks < 0 || r.Tasks > maxTasks {
		return nil, fmt.Errorf("report of %d tasks: not possible", r.Tasks)
	}
	return r, nil
}
