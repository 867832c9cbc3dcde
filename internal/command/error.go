package command

import (
	"errors"
	"fmt"
)

// The exit codes of PROTOCOL.md section 9. They are a contract with scripts.
const (
	Failed      = 1 // the tool did not succeed, or the command could not do its work
	Usage       = 2 // the command line is wrong
	NoResult    = 3 // no result in time
	Unreachable = 4 // NATS cannot be reached or refused
)

// Error is an error with an exit code of its own.
type Error struct {
	Code int
	Err  error  // nil: everything has been said already
	Hint string // what to do about it; may be ""
}

func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Usagef is an error of the command line.
func Usagef(format string, args ...any) *Error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// WithHint returns e with a hint.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// ExitCode is the exit code that err asks for; 0 for nil, Failed for others.
func ExitCode(err error) int {
	var e *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.Code
	}
	return Failed
}
