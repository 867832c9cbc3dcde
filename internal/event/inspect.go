package event

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

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
	case c == 'n' && i.literal("null"):
		return nil, nil
	case c == 't' && i.literal("true"):
		return true, nil
	case c == 'f' && i.literal("false"):
		return false, nil
	}
	return nil, i.syntax(fmt.Sprintf("%q begins no value", rune(i.data[i.at])))
}

// literal reads over a word, if it is there.
func (i *inspector) literal(word string) bool {
	found := bytes.HasPrefix(i.data[i.at:], []byte(word))
	if found {
		i.at += len(word)
	}
	return found
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
