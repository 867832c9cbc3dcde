package capture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/tool"
)

// DefaultMemory is how many bytes of one content are kept in memory before
// it moves to a file.
const DefaultMemory = 256 << 10

// Spool is a tool.Content that is written first and read afterwards. It is
// not safe for concurrent writing; once written, it may be opened by many.
type Spool struct {
	dir    string
	memory int
	create func(dir string) (*os.File, error)

	buf    []byte
	file   *os.File
	size   int64
	closed bool
}

// NewSpool returns an empty Spool that keeps up to memory bytes itself (0:
// DefaultMemory) and more in a file of dir ("": the system's directory for
// temporary files), which has no name and vanishes with the process.
func NewSpool(dir string, memory int) *Spool {
	if memory <= 0 {
		memory = DefaultMemory
	}
	return &Spool{dir: dir, memory: memory, create: createUnlinked}
}

// Write appends p. An error is a *tool.Fault: the disk is full or gone.
func (s *Spool) Write(p []byte) (int, error) {
	if s.closed {
		return 0, os.ErrClosed
	}
	if s.file == nil && len(s.buf)+len(p) > s.memory {
		if err := s.moveToFile(); err != nil {
			return 0, &tool.Fault{Err: fmt.Errorf("spool output: %w", err)}
		}
	}
	if s.file == nil {
		s.buf = append(s.buf, p...)
		s.size += int64(len(p))
		return len(p), nil
	}
	n, err := s.file.Write(p)
	s.size += int64(n)
	if err != nil {
		return n, &tool.Fault{Err: fmt.Errorf("spool output: %w", err)}
	}
	return n, nil
}

func (s *Spool) moveToFile() error {
	dir := s.dir
	if dir == "" {
		dir = os.TempDir()
	}
	file, err := s.create(dir)
	if err != nil {
		return err
	}
	if _, err := file.Write(s.buf); err != nil {
		return errors.Join(err, file.Close())
	}
	s.file, s.buf = file, nil
	return nil
}

// createUnlinked opens a file that has no name, or loses it at once where the
// file system knows no such files.
func createUnlinked(dir string) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err == nil {
		return os.NewFile(uintptr(fd), dir+" (unlinked)"), nil
	}
	file, err := os.CreateTemp(dir, "toolworker-output-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Size implements tool.Content.
func (s *Spool) Size() int64 { return s.size }

// Open implements tool.Content. The reader is an io.Seeker as well.
func (s *Spool) Open() (io.ReadCloser, error) {
	switch {
	case s.closed:
		return nil, fmt.Errorf("open output: %w", os.ErrClosed)
	case s.file != nil:
		return section{io.NewSectionReader(s.file, 0, s.size)}, nil
	}
	return section{bytes.NewReader(s.buf[:s.size])}, nil
}

// truncate forgets what follows the first size bytes.
func (s *Spool) truncate(size int64) { s.size = min(s.size, size) }

// Close implements tool.Content. Readers that are still open fail.
func (s *Spool) Close() error {
	if s.closed {
		return nil
	}
	s.closed, s.buf = true, nil
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// section is a reader of kept bytes; there is nothing to close of its own.
type section struct{ io.ReadSeeker }

func (section) Close() error { return nil }
