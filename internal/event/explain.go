package event

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// explain lists everything that is wrong with a message that was refused
// because of first. It never accepts.
func explain(m Message, form form, l lane, first faults) (*tool.Request, error) {
	var e rawEvent
	var f faults
	var data any
	var unreadable error
	if form == binary {
		readBinary(m, &e, &f)
		data, unreadable = inspectData(e.data, &f)
	} else {
		data, unreadable = explainStructured(m.Data, &e, &f)
	}
	name := e.value[id]
	if !tool.ValidName(name) {
		switch {
		case unreadable != nil:
		case e.bad[id]:
			unreadable = fmt.Errorf("id: %s", f.at("/id"))
		case e.set[id]:
			unreadable = fmt.Errorf("id %q: expected 1 to %d characters of A-Z a-z 0-9 _ -", cut(name, maxShown), tool.MaxNameLength)
		default:
			unreadable = fmt.Errorf("no CloudEvent: id is missing")
		}
		return nil, &Unreadable{Reason: unreadable.Error()}
	}
	q := newRequest(l, &e.attributes)
	if unreadable != nil {
		return q, &Unreadable{ID: name, Reason: unreadable.Error()}
	}
	e.checkRequest(&f)
	switch {
	case e.data != nil:
		explainData(q, &e, data, &f)
	case e.set[dataRef] && !e.bad[dataRef]:
		if _, err := parseReference(l, &e.attributes); err != nil {
			f.attribute(dataRef, "%q: %v", cut(e.value[dataRef], 3*maxShown), err)
		}
	case f.at("/data_base64") == "":
		f.add("/data", "missing, but required")
	}
	if len(f) == 0 {
		f = first
	}
	return q, f.error()
}

// explainStructured reads an event in JSON tolerantly: its attributes into e,
// its faults into f. The error says why the message is unreadable.
func explainStructured(body []byte, e *rawEvent, f *faults) (data any, err error) {
	i, value, err := inspect(body, MaxDepth+1)
	*f = append(*f, i.faults...)
	explainAttributes(i.top, e, f)
	if err != nil {
		return nil, fmt.Errorf("no JSON: %w", err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no CloudEvent: expected a JSON object, it is %s", kindOf(value))
	}
	if object["specversion"] == nil {
		return nil, fmt.Errorf("no CloudEvent: specversion is missing")
	}
	data, encoded := object["data"], object["data_base64"]
	if data != nil && encoded != nil {
		f.add("/data_base64", "both data and data_base64")
	}
	if data != nil {
		e.data = body // there is some
		return data, nil
	}
	if encoded == nil {
		return nil, nil
	}
	text, ok := encoded.(string)
	decoded, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		f.add("/data_base64", "expected base64 with padding")
		return nil, nil
	}
	e.data = decoded
	return inspectData(decoded, f)
}

// explainAttributes takes attributes from the members of an event.
func explainAttributes(object map[string]any, e *rawEvent, f *faults) {
	for name, value := range object {
		at := attributeNamed([]byte(name))
		switch v := value.(type) {
		case nil:
			continue
		case string:
			if at != noAttribute {
				e.put(at, v)
			}
		default:
			if at != noAttribute {
				f.attribute(at, "is %s, expected a text", kindOf(v))
				e.bad[at] = true
				continue
			}
		}
		if at == noAttribute && name != "data" && name != "data_base64" {
			explainExtension(name, value, f)
		}
	}
}

func explainExtension(name string, value any, f *faults) {
	pointer := "/" + schemas.EscapePointer(cut(name, maxShown))
	if !validAttributeName([]byte(name)) {
		f.add(pointer, "no name of an attribute: expected lower-case letters and digits")
	}
	switch value.(type) {
	case map[string]any, []any:
		f.add(pointer, "is %s, expected a text, a number, true or false", kindOf(value))
	}
}

// inspectData reads data tolerantly; nil is none.
func inspectData(data []byte, f *faults) (any, error) {
	if data == nil {
		return nil, nil
	}
	i, value, err := inspect(data, MaxDepth)
	f.below("/data", i.faults)
	if err != nil {
		return nil, fmt.Errorf("the data is no JSON: %w", err)
	}
	return value, nil
}

// explainData adds what is wrong with the data of a request, and fills q with
// the names in it that a result repeats.
func explainData(q *tool.Request, e *rawEvent, data any, f *faults) {
	f.below("/data", schemaFaults(schemas.Request, data))
	object, _ := data.(map[string]any)
	inline, _ := object["inline"].(map[string]any)
	plan, _ := object["plan"].(map[string]any)
	q.Tool = nameIn(object, "tool")
	if q.Tool == "" && inline != nil {
		q.Inline = &tool.Inline{Name: nameIn(inline, "name")}
	}
	if id, _ := plan["id"].(string); len(id) <= maxPlanID {
		q.Plan.ID = id
	}
	project := nameIn(object, "project")
	if project == "" {
		project = q.Project // at fault already
	}
	name := q.Name()
	if q.Tool == "" && q.Inline == nil || q.Tool != "" && inline != nil {
		name = e.value[subject] // nothing to compare it with
	}
	agree(&e.attributes, project, q.Project, name, f)
}

// nameIn is a member that is a valid name, else "".
func nameIn(object map[string]any, member string) string {
	if s, _ := object[member].(string); tool.ValidName(s) {
		return s
	}
	return ""
}

// schemaFaults lists how a value violates a schema.
func schemaFaults(schema string, value any) []schemas.Fault {
	s, err := schemas.Compile(schema)
	if err != nil {
		return []schemas.Fault{{Message: err.Error()}}
	}
	return schemas.Faults(s.Validate(value))
}

// kindOf is what a JSON value is, in a word or two.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case []any:
		return "a list"
	}
	return "an object"
}
