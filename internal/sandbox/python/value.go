package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	valueHeader   = 5
	maxReasonSize = 4096
)

// Said is what a process sends beside its output.
type Said struct {
	// Value is the JSON of the variable result, compact as it was sent, nil
	// when it is unassigned; Reason says why it has none.
	Value  []byte
	Reason string
	// Limit names the limit that the exception ran into which ended the code:
	// a member of Limits, "" for none. The code can make it up.
	Limit string
}

// Limits are what a process may say that it ran into, by the names that
// requests have for them.
var Limits = []string{"memory_bytes", "file_size_bytes", "open_files", "pids"}

// ReadValue is Read for who does not ask for the limit.
func ReadValue(r io.Reader, maxBytes uint32) (value []byte, reason string, err error) {
	said, err := Read(r, maxBytes)
	return said.Value, said.Reason, err
}

// Read reads what the process sends, until EOF. Every byte comes from the
// untrusted side: what breaks a rule of the frames or of strict JSON (RFC 8259,
// UTF-8, no duplicate names), or is nested deeper than MaxValueDepth, gives a
// reason, what is too much is drained and discarded, and memory stays bounded
// by maxBytes (0: MaxValueBytes). The error is r's own; EOF is none.
func Read(r io.Reader, maxBytes uint32) (said Said, err error) {
	if maxBytes == 0 {
		maxBytes = MaxValueBytes
	}
	defer func() {
		// The process must not block on what nobody wants.
		if _, drain := io.Copy(io.Discard, r); drain != nil && err == nil {
			err = fmt.Errorf("drain value: %w", drain)
		}
	}()
	tag, body, reason, err := readFrame(r, maxBytes)
	if tag == 'l' && slices.Contains(Limits, string(body)) {
		said.Limit = string(body)
		tag, body, reason, err = readFrame(r, maxBytes)
	}
	said.Reason = reason
	if err != nil || reason != "" || tag == 0 {
		return said, err
	}
	if n, _ := io.CopyN(io.Discard, r, 1); n > 0 || tag == 'l' {
		said.Reason = notAFrame
		return said, nil
	}
	if tag == 'e' {
		said.Reason = reasonText(body)
		return said, nil
	}
	if err := checkJSON(body); err != nil {
		said.Reason = "result is not strict JSON: " + err.Error()
		return said, nil
	}
	said.Value = body
	return said, nil
}

const notAFrame = "result did not arrive as a frame: the code wrote to its descriptor"

// readFrame reads one frame; the tag is 0 when there is none, or when the
// reason says what is wrong with it.
func readFrame(r io.Reader, maxBytes uint32) (tag byte, body []byte, reason string, err error) {
	var header [valueHeader]byte
	switch n, readErr := io.ReadFull(r, header[:]); {
	case n == 0 && errors.Is(readErr, io.EOF):
		return 0, nil, "", nil
	case errors.Is(readErr, io.ErrUnexpectedEOF):
		return 0, nil, "result was cut off", nil
	case readErr != nil:
		return 0, nil, "", fmt.Errorf("read value: %w", readErr)
	}
	tag, size := header[0], binary.LittleEndian.Uint32(header[1:])
	limit := maxBytes
	switch tag {
	case 'v':
	case 'e', 'l':
		limit = maxReasonSize
	default:
		return 0, nil, notAFrame, nil
	}
	if size > limit {
		return 0, nil, fmt.Sprintf("result: larger than %d bytes of JSON", maxBytes), nil
	}
	var got bytes.Buffer // grows with what arrives, whatever the header claims
	switch n, readErr := io.CopyN(&got, r, int64(size)); {
	case n == int64(size):
		return tag, got.Bytes(), "", nil
	case errors.Is(readErr, io.EOF):
		return 0, nil, "result was cut off", nil
	default:
		return 0, nil, "", fmt.Errorf("read value: %w", readErr)
	}
}

func checkJSON(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	if deeper(b, MaxValueDepth) {
		return fmt.Errorf("more than %d levels deep", MaxValueDepth)
	}
	return nil
}

// deeper reports whether valid JSON has more than so many levels of objects
// and lists: the code may send what its own side of the pipe would refuse, and
// planners' parsers have less patience with it than this one.
func deeper(b []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > most {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// reasonText is b as one printable line; never empty, for an empty reason
// means that there is none.
func reasonText(b []byte) string {
	s := strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return ' '
		}
		return r
	}, string(b))
	if s = strings.TrimSpace(s); s == "" {
		return "result cannot be represented as JSON"
	}
	return s
}
