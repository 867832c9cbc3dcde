package devfile

import (
	"bytes"
	"errors"
)

// strip turns JSON with comments and trailing commas into plain JSON.
func strip(b []byte) ([]byte, error) {
	out := make([]byte, 0, len(b))
	comma := -1 // where in out a comma stands that nothing has followed yet
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := endOfString(b, i)
			if end < 0 {
				return nil, errors.New("it has a string without an end")
			}
			out, comma = append(out, b[i:end]...), -1
			i = end
		case bytes.HasPrefix(b[i:], []byte("//")):
			n := bytes.IndexAny(b[i:], "\n\r")
			if n < 0 {
				n = len(b) - i
			}
			i += n
		case bytes.HasPrefix(b[i:], []byte("/*")):
			n := bytes.Index(b[i+2:], []byte("*/"))
			if n < 0 {
				return nil, errors.New("it has a comment without an end")
			}
			out = append(out, ' ')
			i += 2 + n + 2
		case c == ',':
			comma = len(out)
			out = append(out, c)
			i++
		case c == '}' || c == ']':
			if comma >= 0 {
				out[comma] = ' '
			}
			out, comma = append(out, c), -1
			i++
		default:
			if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				comma = -1
			}
			out = append(out, c)
			i++
		}
	}
	return out, nil
}

// endOfString is the index after the string that begins at i, -1 without end.
func endOfString(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			return j + 1
		}
	}
	return -1
}
