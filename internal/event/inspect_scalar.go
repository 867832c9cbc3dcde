package event

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/schemas"
)

// text reads a string; what is no text in it becomes U+FFFD.
func (i *inspector) text() (string, error) {
	start := i.at
	for i.at++; ; i.at++ {
		if i.at >= len(i.data) {
			i.at = len(i.data)
			return "", i.syntax("it ends within a text")
		}
		c := i.data[i.at]
		if c == '"' {
			break
		}
		if c == '\\' {
			i.at++
		} else if c < 0x20 {
			return "", i.syntax("control character in a text")
		}
	}
	i.at++
	quoted := i.data[start:i.at]
	text, err := jsontext.AppendUnquote(nil, quoted)
	if err == nil {
		return string(text), nil
	}
	if !utf8.Valid(quoted) {
		i.fault("invalid UTF-8")
	}
	replaced, lone := replaceSurrogates(bytes.ToValidUTF8(quoted, []byte("\uFFFD")))
	if lone {
		i.fault("lone surrogate in a text")
	}
	if text, err = jsontext.AppendUnquote(nil, replaced); err != nil {
		i.at = start
		return "", i.syntax("invalid escape in a text")
	}
	return string(text), nil
}

// replaceSurrogates replaces escapes of one half of a surrogate pair by \ufffd.
func replaceSurrogates(quoted []byte) (replaced []byte, found bool) {
	replaced = quoted
	for at := 0; at < len(quoted); at++ {
		if quoted[at] != '\\' {
			continue
		}
		unit, ok := utf16Unit(quoted[at:])
		switch {
		case !ok:
			at++
			continue
		case unit >= 0xd800 && unit < 0xdc00:
			if second, ok := utf16Unit(quoted[at+6:]); ok && second >= 0xdc00 && second < 0xe000 {
				at += 11
				continue
			}
		case unit < 0xdc00 || unit >= 0xe000:
			at += 5
			continue
		}
		if !found {
			replaced, found = bytes.Clone(quoted), true
		}
		copy(replaced[at+2:], "fffd")
		at += 5
	}
	return replaced, found
}

// utf16Unit is the value of the escape \uXXXX that s begins with.
func utf16Unit(s []byte) (uint64, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	return unit, err == nil
}

// number reads a number. One that is too large to compute with becomes one
// that is larger, or smaller, than any bound.
func (i *inspector) number() (any, error) {
	for _, word := range [...]string{"NaN", "Infinity", "-Infinity"} {
		if i.literal(word) {
			i.fault("%s is no JSON number", word)
			return json.Number("1"), nil
		}
	}
	start := i.at
	for i.at < len(i.data) && strings.IndexByte("+-.0123456789eE", i.data[i.at]) >= 0 {
		i.at++
	}
	text := string(i.data[start:i.at])
	if !jsontext.Value(text).IsValid() {
		i.at = start
		return nil, i.syntax("invalid number")
	}
	if schemas.NumberInBounds(text) {
		return json.Number(text), nil
	}
	f, _ := strconv.ParseFloat(text, 64)
	switch {
	case f > 1e300:
		return json.Number("1e300"), nil
	case f < -1e300:
		return json.Number("-1e300"), nil
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
}
