package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// ResultDoc is a result as it was received. Members of later workers that are
// not known here are only in Raw.
type ResultDoc struct {
	// Event is what the attributes of the event say.
	Event EventInfo `json:"-"`
	// Raw is the whole result, one JSON document.
	Raw json.RawMessage `json:"-"`

	RequestID        string              `json:"request_id"`
	Project          string              `json:"project"`
	PlanID           string              `json:"plan_id"`
	Tool             string              `json:"tool"`
	Status           tool.Status         `json:"status"`
	Success          bool                `json:"success"`
	Output           json.RawMessage     `json:"output"` // nil when absent
	Value            json.RawMessage     `json:"value"`
	Stdout           *string             `json:"stdout"`
	Stderr           *string             `json:"stderr"`
	Truncated        bool                `json:"truncated"`
	Error            *tool.Error         `json:"error"` // nil exactly when Success
	DurationMS       float64             `json:"duration_ms"`
	Attempt          int                 `json:"attempt"`
	Worker           string              `json:"worker"`
	Files            []tool.File         `json:"files"`
	Changes          []tool.Change       `json:"changes"`
	ChangesTruncated bool                `json:"changes_truncated"`
	Refs             map[string]tool.Ref `json:"refs"` // moved members by name
	Metadata         tool.Metadata       `json:"metadata"`
}

// EventInfo are attributes of an event that was received.
type EventInfo struct {
	ID            string
	Source        string
	Type          string
	Subject       string
	Time          time.Time // zero when there is none
	CorrelationID string
	CausationID   string
	TraceParent   string
	TraceState    string
}

func (a *attributes) info() EventInfo {
	return EventInfo{
		ID: a.value[id], Source: a.value[source], Type: a.value[eventType], Subject: a.value[subject],
		Time: a.time(eventTime), CorrelationID: a.value[correlationID], CausationID: a.value[causationID],
		TraceParent: a.value[traceParent], TraceState: a.value[traceState],
	}
}

// DecodeResult reads the event of a result, in any of the forms of events. An
// error lists what violates the schema.
func DecodeResult(m Message) (*ResultDoc, error) {
	e, err := readEvent(m)
	if err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	if t := e.value[eventType]; t != TypeResult {
		return nil, fmt.Errorf("decode result: type %q: expected %s", cut(t, maxShown), TypeResult)
	}
	doc := &ResultDoc{Event: e.info(), Raw: e.data}
	if err := decodeDocument(schemas.Result, e.data, doc); err != nil {
		return nil, fmt.Errorf("decode result: %w", err)
	}
	return doc, nil
}

// readEvent reads an event of any type, and checks only what all events have
// in common.
func readEvent(m Message) (*rawEvent, error) {
	form, err := formOf(m)
	if err != nil {
		return nil, err
	}
	var e rawEvent
	var f faults
	if form == binary {
		readBinary(m, &e, &f)
	} else if err := readStructured(m.Data, &e); err != nil {
		return nil, errors.New(fault(err, "").String())
	}
	e.checkEvent(e.value[eventType], &f)
	if len(f) > 0 {
		return nil, f.error()
	}
	if e.data == nil {
		return nil, errors.New("it has no data")
	}
	return &e, nil
}

// decodeDocument reads data, which has to satisfy a schema, into v.
func decodeDocument(schema string, data []byte, v any) error {
	value, err := schemas.Value(data)
	if err != nil {
		return errors.New(fault(err, "/data").String())
	}
	var f faults
	f.below("/data", schemaFaults(schema, value))
	if len(f) > 0 {
		return errors.New(f.error().Message)
	}
	if err := jsonv2.Unmarshal(data, v); err != nil {
		return err
	}
	return nil
}
