package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/schemas"
)

// inspector reads JSON tolerantly, to list what is wrong with it: duplicate
// members, NaN and Infinity, invalid UTF-8, lone surrogates, too many levels
// and a byte order mark are faults and reading goes on. Everything else that
// is no JSON is an error.
type inspector struct {
	data   []byte
	at     int
	path   []string
	levels int // how many may be open
	faults faults
	// top holds the members of the outermost object that were read, also
	// when reading ended in an error.
	top map[string]any
}

// inspect reads data, which may have so many levels of objects and lists. Its
// value has the types that schemas take; a number that is no number is 1.
func inspect(data []byte, levels int) (i *inspector, value any, err error) {
	i = &inspector{data: data, levels: levels}
	if rest, found := bytes.CutPrefix(data, []byte("\xef\xbb\xbf")); found {
		i.fault("begins with a byte order mark")
		i.data = rest
	}
	if value, err = i.value(); err != nil {
		return i, nil, err
	}
	if i.space(); i.at < len(i.data) {
		return i, nil, i.syntax("something follows the document")
	}
	return i, value, nil
}

func (i *inspector) fault(format string, args ...any) {
	var p strings.Builder
	for _, token := range i.path {
		p.WriteByte('/')
		p.WriteString(schemas.EscapePointer(cut(token, maxShown)))
	}
	i.faults.add(p.String(), format, args...)
}

func (i *inspector) syntax(what string) error {
	return fmt.Errorf("%s, at byte %d", what, i.at)
}

func (i *inspector) space() {
	for i.at < len(i.data) && (i.data[i.at] == ' ' || i.data[i.at] == '\n' || i.data[i.at] == '\r' || i.data[i.at] == '\t') {
		i.at++
	}
}

// next is the first byte of the next token; 0 at the end.
func (i *inspector) next() byte {
	if i.space(); i.at < len(i.data) {
		return i.data[i.at]
	}
	return 0
}

func (i *inspector) value() (any, error) {
	switch c := i.next(); {
	case c == 0 && i.at == len(i.data):
		return nil, i.syntax("it ends too early")
	case c == '{' || c == '[':
		if len(i.path) >= i.levels {
			i.fault("more than %d levels of objects and lists", MaxDepth)
			return nil, i.skip()
		}
		if c == '{' {
			return i.object()
		}
		return i.list()
	case c == '"':
		return i.text()
	case c == '-' || c >= '0' && c <= '9' || c == 'N' || c == 'I':
		return i.number()
	}
	for literal, v := range map[string]any{"null": nil, "true": true, "false": false} {
		if bytes.HasPrefix(i.data[i.at:], []byte(literal)) {
			i.at += len(literal)
			return v, nil
		}
	}
	return nil, i.syntax(fmt.Sprintf("%q begins no value", rune(i.data[i.at])))
}

func (i *inspector) object() (any, error) {
	object := map[string]any{}
	if i.top == nil && len(i.path) == 0 {
		i.top = object
	}
	i.at++
	if i.next() == '}' {
		i.at++
		return object, nil
	}
	for {
		if i.next() != '"' {
			return nil, i.syntax("expected the name of a member")
		}
		name, err := i.text()
		if err != nil {
			return nil, err
		}
		if i.next() != ':' {
			return nil, i.syntax("expected a colon")
		}
		i.at++
		i.path = append(i.path, name)
		_, duplicate := object[name]
		if duplicate {
			i.fault("duplicate member")
		}
		v, err := i.value()
		if err != nil {
			return nil, err
		}
		i.path = i.path[:len(i.path)-1]
		if !duplicate {
			object[name] = v
		}
		switch i.next() {
		case ',':
			i.at++
		case '}':
			i.at++
			return object, nil
		default:
			return nil, i.syntax("expected a comma or the end of the object")
		}
	}
}

func (i *inspector) list() (any, error) {
	list := []any{}
	i.at++
	if i.next() == ']' {
		i.at++
		return list, nil
	}
	for {
		i.path = append(i.path, strconv.Itoa(len(list)))
		v, err := i.value()
		if err != nil {
			return nil, err
		}
		i.path = i.path[:len(i.path)-1]
		list = append(list, v)
		switch i.next() {
		case ',':
			i.at++
		case ']':
			i.at++
			return list, nil
		default:
			return nil, i.syntax("expected a comma or the end of the list")
		}
	}
}

// skip reads over an object or a list of any depth.
func (i *inspector) skip() error {
	for level := 0; i.at < len(i.data); i.at++ {
		switch i.data[i.at] {
		case '{', '[':
			level++
		case '}', ']':
			if level--; level == 0 {
				i.at++
				return nil
			}
		case '"':
			for i.at++; i.at < len(i.data) && i.data[i.at] != '"'; i.at++ {
				if i.data[i.at] == '\\' {
					i.at++
				}
			}
		}
	}
	i.at = len(i.data)
	return i.syntax("it ends too early")
}

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
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(i.data[i.at:], []byte(word)) {
			i.at += len(word)
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
