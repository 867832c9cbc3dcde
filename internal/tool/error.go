package tool

import (
	"errors"
	"fmt"
)

// Error is why a request did not succeed, as its planner reads it.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Errorf makes an Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// AsError returns err as an *Error: itself when it wraps one, else a new one
// with the code Internal.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: Internal, Message: err.Error()}
}

// Causes with which the context of an execution is cancelled.
var (
	// ErrCancelled: somebody cancelled the request; it is answered so.
	ErrCancelled = errors.New("request cancelled")
	// ErrDrained: the worker shuts down; the message is given back and nothing counts as failed.
	ErrDrained = errors.New("worker is draining")
)

// Fault wraps an error of the infrastructure (engine unreachable,
// interpreter missing, disk full): neither the request nor the tool is to
// blame. Only a Fault makes a message go back to the queue.
type Fault struct{ Err error }

func (f *Fault) Error() string { return "infrastructure: " + f.Err.Error() }
func (f *Fault) Unwrap() error { return f.Err }
