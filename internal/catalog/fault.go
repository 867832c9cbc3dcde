package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Place is where an entry or a fault was read.
type Place struct {
	// File is the path of a file as it was found below the catalogue
	// directory, or the key of an entry in the bucket.
	File string
	// Line counts from 1; 0 where there are no lines, as in the bucket.
	Line int
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d", p.File, p.Line)
}

// Fault is one reason why an entry was refused.
type Fault struct {
	Place Place
	// Entry is the entry at fault, such as `tool "file_read"`; "" when its
	// name cannot be read.
	Entry string
	// Reason begins with the JSON pointer of the member at fault when there is one.
	Reason string
}

func (f Fault) String() string {
	if f.Entry == "" {
		return f.Place.String() + ": " + f.Reason
	}
	return f.Place.String() + ": " + f.Entry + ": " + f.Reason
}

// Faults lists everything wrong with a catalogue, in the order of the places.
type Faults []Fault

// Error is one fault per line.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, fault := range f {
		lines[i] = fault.String()
	}
	return strings.Join(lines, "\n")
}

// Err is f as an error, nil when there are no faults.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Line, b.Place.Line))
	})
}
