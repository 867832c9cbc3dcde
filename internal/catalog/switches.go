package catalog

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// SwitchKind says what a switch holds back.
type SwitchKind string

// The kinds of switches.
const (
	SwitchPool    SwitchKind = "pool"
	SwitchProject SwitchKind = "project"
	SwitchTool    SwitchKind = "tool"
)

// Switch is a pool, project or tool that an operator has paused: its
// requests wait in the queue until it is resumed.
type Switch struct {
	Kind SwitchKind `json:"kind"`
	Name string     `json:"name"`
}

// switchPrefix is what the keys of switches begin with:
// pause.<kind>.<name>. Nothing but the key matters.
const switchPrefix = "pause."

func (s Switch) key() string { return switchPrefix + string(s.Kind) + "." + s.Name }

func (s Switch) String() string { return string(s.Kind) + " " + s.Name }

// check names what is wrong with a switch that an operator asked for.
func (s Switch) check() error {
	return tool.CheckName(string(s.Kind), s.Name)
}

// switchOf reads the key of a switch; false for any other key.
func switchOf(key string) (Switch, bool) {
	rest, ok := strings.CutPrefix(key, switchPrefix)
	if !ok {
		return Switch{}, false
	}
	kind, name, _ := strings.Cut(rest, ".")
	s := Switch{Kind: SwitchKind(kind), Name: name}
	switch s.Kind {
	case SwitchPool, SwitchProject, SwitchTool:
		return s, tool.ValidName(name)
	}
	return Switch{}, false
}

// switches is a set that is never changed once it is in a snapshot.
type switches map[Switch]struct{}

// Paused reports whether an operator holds back requests of this pool,
// project or tool. toolName is "" for inline code.
func (s *Snapshot) Paused(pool, project, toolName string) bool {
	if len(s.switches) == 0 {
		return false
	}
	for _, w := range [...]Switch{{SwitchPool, pool}, {SwitchProject, project}, {SwitchTool, toolName}} {
		if _, ok := s.switches[w]; ok {
			return true
		}
	}
	return false
}

// Switches lists what is paused, by kind and name.
func (s *Snapshot) Switches() []Switch {
	list := make([]Switch, 0, len(s.switches))
	for w := range s.switches {
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b Switch) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return list
}
