package event

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"
)

// input keeps the bytes of the input object as they were sent.
func (r *reader) input(in *json.RawMessage) error {
	raw, err := r.raw()
	if err != nil {
		return err
	}
	if raw[0] != '{' {
		return r.refuse("expected an object")
	}
	if depth(raw, MaxDepth) >= MaxDepth { // the data itself is one level more
		return r.refuse("expected at most %d levels", MaxDepth)
	}
	if bytes.Contains(raw, []byte(`\u0000`)) {
		if err := checkPaths(raw); err != nil {
			wrong := fault(err, "/input")
			return (*misfit)(&wrong)
		}
	}
	*in = raw
	return nil
}

// checkPaths refuses NUL in the paths of an input, which has not too many
// levels: the strings, and the strings in lists, of members that isPathKey.
func checkPaths(input []byte) error {
	r := newReader(input)
	defer r.free()
	return r.paths(false)
}

// paths reads one value, which is a path if it is a string.
func (r *reader) paths(isPath bool) error {
	switch r.d.PeekKind() {
	case jsontext.KindBeginObject:
		return r.object(func(name []byte) error { return r.paths(isPathKey(name)) })
	case jsontext.KindBeginArray:
		return r.pathList(isPath)
	case jsontext.KindString:
		v, err := r.d.ReadValue()
		if err == nil && isPath && bytes.Contains(v, []byte(`\u0000`)) {
			var text []byte
			if text, err = jsontext.AppendUnquote(nil, v); err == nil && bytes.IndexByte(text, 0) >= 0 {
				return r.refuse("%q: expected a path without NUL", cut(string(text), maxShown))
			}
		}
		return err
	}
	return r.d.SkipValue()
}

// pathList reads a list, whose strings are paths; lists in it have none.
func (r *reader) pathList(isPath bool) error {
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for {
		kind := r.d.PeekKind()
		if kind == jsontext.KindEndArray {
			_, err := r.d.ReadToken()
			return err
		}
		if err := r.paths(isPath && kind == jsontext.KindString); err != nil {
			return err
		}
	}
}

// isPathKey reports whether a member of an input holds a path or a list of
// paths (PROTOCOL.md section 2, Paths).
func isPathKey(name []byte) bool {
	return string(name) == "path" || bytes.HasSuffix(name, []byte("_path")) || bytes.HasSuffix(name, []byte("_file"))
}

// depth is how many levels of objects and lists a JSON document has; it
// stops counting at most.
func depth(document []byte, most int) int {
	if bytes.Count(document, []byte("{"))+bytes.Count(document, []byte("[")) < most {
		return 0 // too few to matter
	}
	level, deepest := 0, 0
	for i := 0; i < len(document) && deepest < most; i++ {
		switch document[i] {
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		case '"':
			for i++; document[i] != '"'; i++ {
				if document[i] == '\\' {
					i++
				}
			}
		}
	}
	return deepest
}
