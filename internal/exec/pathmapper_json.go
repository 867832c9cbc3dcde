package exec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// HostToContainerJSON maps every string value of a JSON document, at any
// depth. Names, order and the text of numbers are kept; a string below the
// root that holds a NUL is an error which names its JSON pointer.
func (m *PathMapper) HostToContainerJSON(doc json.RawMessage) (json.RawMessage, error) {
	return rerootDocument(doc, m.host, m.container)
}

// ContainerToHostJSON is HostToContainerJSON the other way round.
func (m *PathMapper) ContainerToHostJSON(doc json.RawMessage) (json.RawMessage, error) {
	return rerootDocument(doc, m.container, m.host)
}

// ContainerToHostStream maps one JSON document from r to w without holding
// it. Strings that only look like paths, with a NUL in them, pass unchanged:
// the tool wrote them, and nothing is opened by their name.
func (m *PathMapper) ContainerToHostStream(w io.Writer, r io.Reader) error {
	_, err := rerootStream(w, r, m.container, m.host, true)
	return err
}

func rerootDocument(doc json.RawMessage, from, to string) (json.RawMessage, error) {
	var out bytes.Buffer
	out.Grow(len(doc) + len(doc)/8)
	if _, err := rerootStream(&out, bytes.NewReader(doc), from, to, false); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// rerootStream reports whether it mapped anything.
func rerootStream(w io.Writer, r io.Reader, from, to string, lenient bool) (changed bool, err error) {
	dec := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(lenient))
	enc := jsontext.NewEncoder(w, jsontext.PreserveRawStrings(true), jsontext.AllowDuplicateNames(true))
	var text []byte
	for done := false; !done; done = dec.StackDepth() == 0 {
		if kind := dec.PeekKind(); kind == '{' || kind == '}' || kind == '[' || kind == ']' {
			token, err := dec.ReadToken()
			if err != nil {
				return changed, fmt.Errorf("read document: %w", err)
			}
			if err := enc.WriteToken(token); err != nil {
				return changed, fmt.Errorf("write document: %w", err)
			}
			continue
		}
		name := atName(dec)
		value, err := dec.ReadValue()
		if err != nil {
			return changed, fmt.Errorf("read document: %w", err)
		}
		if value.Kind() == '"' && !name {
			if text, err = jsontext.AppendUnquote(text[:0], value); err != nil {
				return changed, fmt.Errorf("read document: %w", err)
			}
			mapped, ok, err := reroot(string(text), from, to)
			if err != nil && !lenient {
				return changed, fmt.Errorf("%s: %w", dec.StackPointer(), err)
			}
			if ok {
				changed = true
				if value, err = jsontext.AppendQuote(nil, mapped); err != nil {
					return changed, fmt.Errorf("write document: %w", err)
				}
			}
		}
		if err := enc.WriteValue(value); err != nil {
			return changed, fmt.Errorf("write document: %w", err)
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return changed, errors.New("read document: expected nothing after it")
	}
	return changed, nil
}

// atName reports whether the next token of dec is the name of a member.
func atName(dec *jsontext.Decoder) bool {
	kind, length := dec.StackIndex(dec.StackDepth())
	return kind == '{' && length%2 == 0
}
