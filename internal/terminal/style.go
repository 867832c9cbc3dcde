package terminal

import (
	"io"
	"os"
)

// Style paints text for a terminal. The zero value leaves it plain.
type Style struct{ on bool }

// NewStyle paints where w is a terminal, unless NO_COLOR is set to anything
// or TERM is "dumb".
func NewStyle(w io.Writer) Style {
	return Style{on: Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s Style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Good is for what went well.
func (s Style) Good(text string) string { return s.paint("32", text) }

// Bad is for what went wrong.
func (s Style) Bad(text string) string { return s.paint("31", text) }

// Odd is for what deserves a look.
func (s Style) Odd(text string) string { return s.paint("33", text) }

// Faint is for what is beside the point.
func (s Style) Faint(text string) string { return s.paint("2", text) }

// Strong is for headings.
func (s Style) Strong(text string) string { return s.paint("1", text) }
