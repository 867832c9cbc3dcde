package event

import (
	"strings"
	"unicode/utf8"

	"github.com/toolworker/toolworker/internal/tool"
)

// Unreadable is a message that is no CloudEvent or no JSON (PROTOCOL.md
// section 6.6): it goes to the dead letters, and gets a rejected result as
// well when ID could be read.
type Unreadable struct {
	ID     string // "" when it could not be read, or cannot be part of a subject
	Reason string // a sentence of at most about 300 bytes
}

func (u *Unreadable) Error() string { return "unreadable message: " + u.Reason }

// Rejection is the error of the result that an Unreadable with an ID gets.
func (u *Unreadable) Rejection() *tool.Error {
	return &tool.Error{Code: tool.InvalidRequest, Message: u.Reason}
}

// maxShown bounds how much of somebody's value an error repeats, in bytes.
const maxShown = 100

// cut is s in valid UTF-8, of at most about max bytes.
func cut(s string, max int) string {
	if len(s) <= max {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	s = s[:max]
	for len(s) > max-utf8.UTFMax && !utf8.RuneStart(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	if last, _ := utf8.DecodeLastRuneInString(s); last == utf8.RuneError && s != "" {
		s = s[:len(s)-1]
	}
	return strings.ToValidUTF8(s, "\uFFFD") + "..."
}
