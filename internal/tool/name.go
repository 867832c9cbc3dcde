package tool

import "fmt"

// MaxNameLength bounds pool, project, request id, tool and inline names, in bytes.
const MaxNameLength = 128

// ValidName reports whether s may be used as a single subject token:
// 1 to 128 characters of [A-Za-z0-9_-].
func ValidName(s string) bool {
	if s == "" || len(s) > MaxNameLength {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckName is ValidName with an error that names the member and its value.
func CheckName(member, s string) error {
	if ValidName(s) {
		return nil
	}
	if len(s) > MaxNameLength {
		s = s[:MaxNameLength] + "..."
	}
	return fmt.Errorf("%s %q: expected 1 to %d characters of A-Z a-z 0-9 _ -", member, s, MaxNameLength)
}

// Priority is the lane of a request within its pool.
type Priority string

// The priorities, served 16 : 4 : 1 while all of them have work.
const (
	High   Priority = "high"
	Normal Priority = "normal"
	Low    Priority = "low"
)

// Priorities lists every priority, most urgent first.
var Priorities = [...]Priority{High, Normal, Low}

// DefaultPool is the pool of requests and workers that name none.
const DefaultPool = "default"
