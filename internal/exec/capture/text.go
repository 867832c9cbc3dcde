package capture

import (
	"fmt"
	"io"
	"unicode/utf8"

	"golang.org/x/text/runes"
	"golang.org/x/text/transform"

	"github.com/toolworker/toolworker/internal/tool"
)

// Text is content read as valid UTF-8: every byte that belongs to no valid
// sequence is replaced by U+FFFD. Its size is exact. Closing it closes c.
// The error is that of reading c, which is read once unless it is Captured.
func Text(c tool.Content) (tool.Content, error) {
	if c, ok := c.(*Captured); ok {
		return asText(c, c.textSize), nil
	}
	r, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var n counter
	if _, err := io.Copy(writerFunc(n.count), r); err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	return asText(c, n.total()), nil
}

func asText(c tool.Content, size int64) tool.Content {
	if size == c.Size() { // a replacement is longer than what it replaces
		return c
	}
	return text{c, size}
}

type text struct {
	tool.Content
	size int64
}

func (t text) Size() int64 { return t.size }

func (t text) Open() (io.ReadCloser, error) {
	r, err := t.Content.Open()
	if err != nil {
		return nil, err
	}
	return readCloser{transform.NewReader(r, runes.ReplaceIllFormed()), r}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// Tail is the end of c as valid UTF-8, at most limit bytes of whole characters.
func Tail(c tool.Content, limit int64) (string, error) {
	r, err := c.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	if err := skip(r, c.Size()-limit); err != nil {
		return "", fmt.Errorf("read output: %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(r, limit))
	if err != nil {
		return "", fmt.Errorf("read output: %w", err)
	}
	if c.Size() > limit {
		raw = afterBrokenRune(raw)
	}
	valid := runes.ReplaceIllFormed().Bytes(raw)
	if excess := int64(len(valid)) - limit; excess > 0 {
		valid = afterBrokenRune(valid[excess:])
	}
	return string(valid), nil
}

func skip(r io.Reader, n int64) error {
	if n <= 0 {
		return nil
	}
	if s, ok := r.(io.Seeker); ok {
		_, err := s.Seek(n, io.SeekStart)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}

// afterBrokenRune is p without the rest of a character that began before it.
func afterBrokenRune(p []byte) []byte {
	for range utf8.UTFMax - 1 {
		if len(p) > 0 && !utf8.RuneStart(p[0]) {
			p = p[1:]
		}
	}
	return p
}
