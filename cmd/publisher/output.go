package main

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/command"
	"github.com/toolworker/toolworker/internal/terminal"
)

// printJSON writes v as one line of JSON.
func (s *session) printJSON(v any) error {
	if err := json.MarshalWrite(s.Out, v, json.Deterministic(true), json.FormatNilSliceAsNull(false)); err != nil {
		return err
	}
	_, err := io.WriteString(s.Out, "\n")
	return err
}

// printDocument writes v as one indented JSON document.
func (s *session) printDocument(v any) error {
	err := json.MarshalWrite(s.Out, v, json.Deterministic(true), json.FormatNilSliceAsNull(false), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = io.WriteString(s.Out, "\n")
	return err
}

// style paints standard output.
func (s *session) style() terminal.Style { return terminal.NewStyle(s.Out) }

// done is the error of a command whose exit code says it all.
func done(code int) error { return &command.Error{Code: code} }

// printable is foreign text for a terminal: control characters other than
// line ends and tabs become U+FFFD, so that it cannot move the cursor.
func printable(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, string(text))
}
