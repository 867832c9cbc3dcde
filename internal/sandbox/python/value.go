package python

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	valueHeader   = 5
	maxReasonSize = 4096
)

// ReadValue reads what the process sends about the variable result, until
// EOF: its JSON, compact as it was sent; or the reason why it has none; or
// neither, when the variable is unassigned. Every byte comes from the
// untrusted side: what breaks a rule of the frame or of strict JSON (RFC 8259,
// UTF-8, no duplicate names) gives a reason, what is too much is drained and
// discarded, and memory stays bounded by maxBytes (0: MaxValueBytes). The error
// is r's own; EOF is none.
func ReadValue(r io.Reader, maxBytes uint32) (value []byte, reason string, err error) {
	if maxBytes == 0 {
		maxBytes = MaxValueBytes
	}
	defer func() {
		// The process must not block on what nobody wants.
		if _, drain := io.Copy(io.Discard, r); drain != nil && err == nil {
			err = fmt.Errorf("drain value: %w", drain)
		}
	}()
	var header [valueHeader]byte
	switch n, readErr := io.ReadFull(r, header[:]); {
	case n == 0 && errors.Is(readErr, io.EOF):
		return nil, "", nil
	case errors.Is(readErr, io.ErrUnexpectedEOF):
		return nil, "result was cut off", nil
	case readErr != nil:
		return nil, "", fmt.Errorf("read value: %w", readErr)
	}
	tag, size := header[0], binary.LittleEndian.Uint32(header[1:])
	limit := maxBytes
	if tag == 'e' {
		limit = maxReasonSize
	}
	if tag != 'v' && tag != 'e' {
		return nil, "result did not arrive as a frame: the code wrote to its descriptor", nil
	}
	if size > limit {
		return nil, fmt.Sprintf("result: larger than %d bytes of JSON", maxBytes), nil
	}
	var body bytes.Buffer // grows with what arrives, whatever the header claims
	n, readErr := io.Copy(&body, io.LimitReader(r, int64(size)+1))
	switch {
	case readErr != nil:
		return nil, "", fmt.Errorf("read value: %w", readErr)
	case n < int64(size):
		return nil, "result was cut off", nil
	case n > int64(size):
		return nil, "result did not arrive as a frame: the code wrote to its descriptor", nil
	}
	if tag == 'e' {
		return nil, reasonText(body.Bytes()), nil
	}
	if err := checkJSON(body.Bytes()); err != nil {
		return nil, "result is not strict JSON: " + err.Error(), nil
	}
	return body.Bytes(), "", nil
}

func checkJSON(b []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(b))
	if _, err := d.ReadValue(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
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
