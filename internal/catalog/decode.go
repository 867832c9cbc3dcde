package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	jsonx "github.com/go-json-experiment/json"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// decoded is what one document turned out to be.
type decoded struct {
	kind  Kind   // "" when it cannot be read
	name  string // "" when it cannot be read
	entry *entry // nil when there are faults
	// faults point into the document.
	faults []schemas.Fault
}

// decode validates one entry against its schema, then against what a schema
// cannot say. All faults are listed, those of the schema first.
func decode(value any) *decoded {
	kind, name, fault := identify(value)
	d := &decoded{kind: kind, name: name}
	if fault != nil {
		d.faults = []schemas.Fault{*fault}
		return d
	}
	schema, err := schemas.Compile(schemaOf(kind))
	if err != nil {
		d.faults = []schemas.Fault{{Message: err.Error()}}
		return d
	}
	d.faults = schemas.Faults(schema.Validate(value))
	text, err := encodeJSON(value)
	if err != nil {
		d.add(schemas.Fault{Message: err.Error()})
		return d
	}
	e := &entry{kind: kind, name: name, json: text}
	for _, f := range e.fill(value) {
		d.add(f)
	}
	if len(d.faults) == 0 {
		d.entry = e
	}
	return d
}

// add appends a fault, unless one of the same place is listed already.
func (d *decoded) add(f schemas.Fault) {
	same := func(other schemas.Fault) bool { return other.Pointer == f.Pointer }
	if !slices.ContainsFunc(d.faults, same) {
		d.faults = append(d.faults, f)
	}
}

// identify reads the kind and the name of an entry, each "" where it is at fault.
func identify(value any) (Kind, string, *schemas.Fault) {
	object, ok := value.(map[string]any)
	if !ok {
		return "", "", &schemas.Fault{Message: "expected one tool or project: an object with kind"}
	}
	var member string
	kind, _ := object["kind"].(string)
	switch Kind(kind) {
	case KindTool:
		member = "name"
	case KindProject:
		member = "id"
	default:
		message := "missing, but required: Tool or Project"
		if k, given := object["kind"]; given {
			message = fmt.Sprintf("%s: expected Tool or Project", quote(k))
		}
		return "", "", &schemas.Fault{Pointer: "/kind", Message: message}
	}
	name, _ := object[member].(string)
	if !tool.ValidName(name) {
		name = ""
	}
	return Kind(kind), name, nil
}

func schemaOf(kind Kind) string {
	if kind == KindProject {
		return schemas.Project
	}
	return schemas.Tool
}

// fill makes the tool or project of an entry from its JSON form.
func (e *entry) fill(value any) []schemas.Fault {
	faults := nulFaults(nil, "", value)
	var more []schemas.Fault
	var err error
	switch e.kind {
	case KindTool:
		var w toolWire
		if err = jsonx.Unmarshal(e.json, &w); err == nil {
			more = e.fillTool(&w, value)
		}
	case KindProject:
		var w projectWire
		if err = jsonx.Unmarshal(e.json, &w); err == nil {
			more = e.fillProject(&w)
		}
	}
	if err != nil {
		more = []schemas.Fault{decodingFault(err)}
	}
	return append(faults, more...)
}

// decodingFault says what Go cannot represent: the schema has refused wrong
// types before, so that what is left are numbers such as 1e3 for a whole one.
func decodingFault(err error) schemas.Fault {
	var semantic *jsonx.SemanticError
	if !errors.As(err, &semantic) {
		return schemas.Fault{Message: err.Error()}
	}
	return schemas.Fault{
		Pointer: string(semantic.JSONPointer),
		Message: fmt.Sprintf("%s: expected another value, such as plain digits for a whole number", semantic.JSONValue),
	}
}

// nulFaults reports every string and member name with a NUL: none may have
// one, since they end up as paths, arguments and variables.
func nulFaults(faults []schemas.Fault, pointer string, value any) []schemas.Fault {
	switch v := value.(type) {
	case string:
		if strings.IndexByte(v, 0) >= 0 {
			faults = append(faults, schemas.Fault{Pointer: pointer, Message: quote(v) + ": expected a string without NUL"})
		}
	case []any:
		for i, item := range v {
			faults = nulFaults(faults, pointer+"/"+strconv.Itoa(i), item)
		}
	case map[string]any:
		for name, member := range v {
			if strings.IndexByte(name, 0) >= 0 {
				faults = append(faults, schemas.Fault{Pointer: pointer, Message: quote(name) + ": expected a member name without NUL"})
			}
			faults = nulFaults(faults, pointer+"/"+escapePointer(name), member)
		}
	}
	return faults
}

// encodeJSON is the JSON form of an entry, members in alphabetical order and
// numbers as they were written.
func encodeJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, fmt.Errorf("encode entry: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// quote repeats a value in a message, bounded in length.
func quote(v any) string {
	const most = 100
	text, err := encodeJSON(v)
	if err != nil {
		return "value"
	}
	if len(text) > most {
		return strings.ToValidUTF8(string(text[:most]), "") + "..."
	}
	return string(text)
}
