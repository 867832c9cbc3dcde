package event

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// Bounds of what an error lists.
const (
	maxFaults       = 100
	maxFaultMessage = 4096 // bytes, all faults together
	maxPointer      = 300  // bytes
)

// faults collects what is wrong with a message, by JSON pointer into the
// event in its JSON form, whichever form it came in.
type faults []schemas.Fault

func (f *faults) add(pointer, format string, args ...any) {
	if len(*f) <= maxFaults {
		*f = append(*f, schemas.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

func (f *faults) attribute(at attribute, format string, args ...any) {
	f.add("/"+attributeNames[at], format, args...)
}

// below adds the faults of a part of the event, which is at base.
func (f *faults) below(base string, list []schemas.Fault) {
	for _, fault := range list {
		f.add(base+fault.Pointer, "%s", fault.Message)
	}
}

// at is the message of the first fault at a pointer; "" when there is none.
func (f faults) at(pointer string) string {
	for _, fault := range f {
		if fault.Pointer == pointer {
			return fault.Message
		}
	}
	return ""
}

// error lists the faults in one message of bounded length.
func (f faults) error() *tool.Error {
	slices.SortStableFunc(f, func(a, b schemas.Fault) int { return strings.Compare(a.Pointer, b.Pointer) })
	f = slices.Compact(f)
	var b strings.Builder
	for i, fault := range f {
		fault.Pointer = cut(fault.Pointer, maxPointer)
		s := fault.String()
		if i > 0 && (i == maxFaults || b.Len()+len(s) > maxFaultMessage) {
			b.WriteString("; and more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(cut(s, maxFaultMessage))
	}
	return &tool.Error{Code: tool.InvalidRequest, Message: b.String()}
}
