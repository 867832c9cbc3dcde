package tool

import (
	"fmt"
	"strings"
)

// Environment is where a tool runs. The empty value means that none was chosen.
type Environment string

// The environments.
const (
	Host      Environment = "host"
	Container Environment = "container"
)

// ParseEnvironment reads "host" or "container" in any letter case; "" stays "".
func ParseEnvironment(s string) (Environment, error) {
	switch e := Environment(strings.ToLower(s)); e {
	case "", Host, Container:
		return e, nil
	}
	return "", fmt.Errorf("%q: expected host or container", s)
}

// Decider names the link of the resolution chain that chose the environment.
type Decider string

// The links of the chain, first wins.
const (
	DecidedByTool    Decider = "tool"
	DecidedByPlan    Decider = "plan"
	DecidedByProject Decider = "project"
	DecidedBySystem  Decider = "system"
)

// Resolution is the environment in force and who decided it.
type Resolution struct {
	Resolved  Environment `json:"resolved"`
	DecidedBy Decider     `json:"decided_by"`
}

// Isolation is the level at which a process is confined on the host.
// The empty value means that none is demanded.
type Isolation string

// The levels, weakest first.
const (
	IsolationNone    Isolation = "none"
	IsolationReduced Isolation = "reduced"
	IsolationFull    Isolation = "full"
)

// ParseIsolation reads "full", "reduced" or "none"; "" stays "".
func ParseIsolation(s string) (Isolation, error) {
	switch i := Isolation(s); i {
	case "", IsolationNone, IsolationReduced, IsolationFull:
		return i, nil
	}
	return "", fmt.Errorf("%q: expected full, reduced or none", s)
}

// AtLeast reports whether i confines at least as strongly as least.
func (i Isolation) AtLeast(least Isolation) bool { return i.rank() >= least.rank() }

// Stronger returns the stronger of two demands.
func (i Isolation) Stronger(other Isolation) Isolation {
	if other.rank() > i.rank() {
		return other
	}
	return i
}

func (i Isolation) rank() int {
	switch i {
	case IsolationFull:
		return 3
	case IsolationReduced:
		return 2
	case IsolationNone:
		return 1
	}
	return 0
}
