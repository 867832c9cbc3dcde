package safefile

import "errors"

// What can be wrong with a file. Every error of this package that is one of
// these wraps it and names the file.
var (
	// ErrName: the name is empty, absolute, or holds NUL, "." or "..".
	ErrName = errors.New("not a name below the root")
	// ErrEscape: the path leads out of the root.
	ErrEscape = errors.New("outside of the root")
	// ErrSymlink: a symlink stands in the way; none is followed.
	ErrSymlink = errors.New("symlink")
	// ErrMount: another file system is mounted in the way.
	ErrMount = errors.New("on another mount")
	// ErrNotRegular: a directory, fifo, socket or device where a file was expected.
	ErrNotRegular = errors.New("not a regular file")
	// ErrLinked: the file has further names, which may be anywhere.
	ErrLinked = errors.New("has more than one link")
	// ErrTooLarge: the file is larger than the caller accepts.
	ErrTooLarge = errors.New("too large")
)
