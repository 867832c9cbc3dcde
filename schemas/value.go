package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxNumberExponent bounds the decimal exponent of the numbers that Value
// accepts: validation computes with exact fractions, and 1e1000000000 would
// be one of a gigabyte.
const MaxNumberExponent = 1000

// MaxNumberLength bounds the length of the numbers that Value accepts, in bytes.
const MaxNumberLength = 1000

// Value parses one strict JSON document into the types that validation takes:
// map[string]any, []any, string, json.Number, bool and nil. Duplicate members,
// invalid UTF-8, anything after the document, more than 10,000 levels, and
// numbers beyond MaxNumberExponent and MaxNumberLength are errors.
func Value(data []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(data)) // read in place
	v, err := readValue(d)
	if err != nil {
		return nil, err
	}
	switch _, err := d.ReadToken(); {
	case err == nil:
		return nil, errors.New("more than one document")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return v, nil
}

func readValue(d *jsontext.Decoder) (any, error) {
	t, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch t.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return t.Bool(), nil
	case '"':
		return t.String(), nil
	case '0':
		return readNumber(d, t.String())
	case '[':
		list := []any{}
		for d.PeekKind() != ']' {
			v, err := readValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.ReadToken()
		return list, err
	}
	object := map[string]any{}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if object[key], err = readValue(d); err != nil {
			return nil, err
		}
	}
	_, err = d.ReadToken()
	return object, err
}

func readNumber(d *jsontext.Decoder, s string) (any, error) {
	if !NumberInBounds(s) {
		if len(s) > 40 {
			s = s[:40] + "..."
		}
		return nil, fmt.Errorf("%s: number %s is too long or its exponent beyond %d",
			pointerOrRoot(string(d.StackPointer())), s, MaxNumberExponent)
	}
	return json.Number(s), nil
}

// NumberInBounds reports whether a JSON number is short enough, in its text and
// in its decimal exponent, to be computed with exactly.
func NumberInBounds(s string) bool {
	if len(s) > MaxNumberLength {
		return false
	}
	for i := range len(s) {
		if s[i] == 'e' || s[i] == 'E' {
			exponent, err := strconv.Atoi(s[i+1:])
			return err == nil && math.Abs(float64(exponent)) <= MaxNumberExponent
		}
	}
	return true
}
