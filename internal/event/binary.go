package event

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// readBinary reads an event whose attributes are headers and whose data is
// the body.
func readBinary(m Message, e *rawEvent, f *faults) {
	for name, values := range m.Header {
		if len(values) == 0 || len(name) < 3 || !strings.EqualFold(name[:3], "ce-") {
			continue
		}
		at := attributeNamed([]byte(strings.ToLower(name[3:])))
		if at == noAttribute {
			continue
		}
		e.header(at, values, f)
	}
	if v := m.Get(HeaderContentType); v != "" && !e.set[dataContentType] && !e.bad[dataContentType] {
		e.put(dataContentType, v)
	}
	if len(m.Data) > 0 {
		e.data = m.Data
	}
}

// header puts the values of one header, which may be given once.
func (a *attributes) header(at attribute, values []string, f *faults) {
	value, err := decodeHeader(values[0])
	again := a.set[at] || a.bad[at] || slices.ContainsFunc(values[1:], func(v string) bool { return v != values[0] })
	switch {
	case again:
		f.attribute(at, "given more than once")
	case err != nil:
		f.attribute(at, "%q: %v", cut(values[0], maxShown), err)
	default:
		a.put(at, value)
		return
	}
	a.set[at], a.value[at], a.bad[at] = false, "", true
}

// decodeHeader is the attribute in a header, as the NATS protocol binding
// wants it: unescaped where it is a double-quoted string, then
// percent-decoded once.
func decodeHeader(v string) (string, error) {
	v = unescapeQuoted(strings.Trim(v, " \t"))
	if strings.IndexByte(v, '%') >= 0 {
		var err error
		if v, err = percentDecode(v); err != nil {
			return "", err
		}
	}
	if !utf8.ValidString(v) {
		return "", errors.New("expected UTF-8")
	}
	return v, nil
}

// percentDecode decodes %XX once.
func percentDecode(s string) (string, error) {
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b = append(b, s[i])
			continue
		}
		if i+2 >= len(s) {
			return "", errors.New("expected two hexadecimal digits after %")
		}
		high, ok1 := hexDigit(s[i+1])
		low, ok2 := hexDigit(s[i+2])
		if !ok1 || !ok2 {
			return "", errors.New("expected two hexadecimal digits after %")
		}
		b = append(b, high<<4|low)
		i += 2
	}
	return string(b), nil
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// unescapeQuoted is the content of a quoted-string of RFC 7230; other values
// are returned unchanged.
func unescapeQuoted(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b = append(b, s[i])
	}
	return string(b)
}
