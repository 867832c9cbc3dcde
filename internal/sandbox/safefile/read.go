package safefile

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Sum is what was read or written: how much, and its SHA-256 in lower-case hex.
type Sum struct {
	Size   int64
	SHA256 string
}

// Open opens a file for reading: regular, with one link, of at most maxSize
// bytes when it is opened. It returns promptly whatever stands at the name.
func (r *Root) Open(name string, maxSize int64) (*os.File, error) {
	parts, err := split(name)
	if err != nil {
		return nil, err
	}
	fd, err := r.open(parts, unix.O_RDONLY)
	if err != nil {
		return nil, explain("open", name, err)
	}
	if err := examine(fd, maxSize); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	// A regular file never blocks; without the flag Go does not ask the poller.
	if err := unix.SetNonblock(fd, false); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("open %q: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// examine refuses what is no regular file with one link and at most maxSize bytes.
func examine(fd int, maxSize int64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return ErrNotRegular
	case st.Nlink != 1:
		return fmt.Errorf("%w: %d", ErrLinked, st.Nlink)
	case st.Size > maxSize:
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, st.Size, maxSize)
	}
	return nil
}

// Copy writes a file to w, at most maxSize bytes of it however it grows
// meanwhile. What it wrote before an error is in the Sum's size.
func (r *Root) Copy(w io.Writer, name string, maxSize int64) (Sum, error) {
	f, err := r.Open(name, maxSize)
	if err != nil {
		return Sum{}, err
	}
	defer f.Close()
	sum, err := copyCounted(w, f, maxSize)
	if err != nil {
		return sum, fmt.Errorf("copy %q: %w", name, err)
	}
	return sum, nil
}

// Hash is Copy to nowhere.
func (r *Root) Hash(name string, maxSize int64) (Sum, error) {
	return r.Copy(io.Discard, name, maxSize)
}

// copyCounted copies at most maxSize bytes and fails when there are more.
func copyCounted(w io.Writer, src io.Reader, maxSize int64) (Sum, error) {
	hash := sha256.New()
	n, err := io.Copy(io.MultiWriter(hash, w), io.LimitReader(src, maxSize))
	if err == nil && n == maxSize {
		var one [1]byte
		switch more, readErr := io.ReadFull(src, one[:]); {
		case more > 0:
			err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, maxSize)
		case !errors.Is(readErr, io.EOF):
			err = readErr
		}
	}
	return Sum{Size: n, SHA256: hex.EncodeToString(hash.Sum(nil))}, err
}
