package event

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// requestData is the data of a request as it is written.
type requestData struct {
	Project string           `json:"project"`
	Tool    string           `json:"tool,omitzero"`
	Inline  *tool.Inline     `json:"inline,omitzero"`
	Input   jsontext.Value   `json:"input,omitzero"`
	ToolEnv tool.Environment `json:"tool_env,omitzero"`
	Plan    tool.Plan        `json:"plan,omitzero"`
	Limits  tool.Limits      `json:"limits,omitzero"`
	Outputs []string         `json:"outputs,omitempty"`
	Retry   tool.Retry       `json:"retry,omitzero"`
	Stream  bool             `json:"stream,omitzero"`
}

// RequestData is the data of a request as JSON: what EncodeRequest puts into
// the event, and what the object behind a dataref holds.
func RequestData(q *tool.Request) ([]byte, error) {
	data, err := json.Marshal(requestData{
		q.Project, q.Tool, q.Inline, jsontext.Value(q.Input), q.ToolEnv, q.Plan, q.Limits, q.Outputs, q.Retry, q.Stream,
	})
	if err != nil {
		return nil, fmt.Errorf("encode request data: %w", err)
	}
	return data, nil
}

// DecodeData reads the data of a request alone, as RequestData writes it. The
// error is a *tool.Error that lists every fault by its JSON pointer.
func DecodeData(data []byte) (*tool.Request, error) {
	q := &tool.Request{}
	err := readData(data, q)
	if err == nil {
		return q, nil
	}
	var f faults
	if i, value, broken := inspect(data, MaxDepth); broken != nil {
		f.add("", "no JSON: %v", broken)
	} else {
		f = i.faults
		f.below("", schemaFaults(schemas.Request, value))
	}
	if len(f) == 0 {
		f = faults{fault(err, "")}
	}
	return nil, f.error()
}

// EncodeRequest writes a request as an event in structured mode. Pool and
// Priority default to the default pool and normal. What it writes is what
// DecodeRequest accepts; what would be refused is the error.
func EncodeRequest(q *tool.Request, prefix string) (Message, error) {
	data, err := RequestData(q)
	if err != nil {
		return Message{}, err
	}
	return encodeRequest(q, prefix, "", data)
}

// EncodeReferenced writes a request whose data, RequestData, was put into an
// object store: bucket and object name it, sum is its sha256 in lower-case
// hex.
func EncodeReferenced(q *tool.Request, prefix, bucket, object, sum string) (Message, error) {
	reference := "nats-obj://" + bucket + "/" + object + "?sha256=" + sum
	return encodeRequest(q, prefix, reference, nil)
}

func encodeRequest(q *tool.Request, prefix, reference string, data []byte) (Message, error) {
	var a attributes
	a.value = [attributeCount]string{
		id: q.ID, source: q.Source, eventType: TypeRequest, subject: q.Name(), eventTime: formatTime(q.Time),
		dataContentType: "application/json", traceParent: q.TraceParent, traceState: q.TraceState,
		correlationID: q.CorrelationID, expiryTime: formatTime(q.ExpiryTime), dataRef: reference,
	}
	body := appendEvent(make([]byte, 0, 512+len(data)), &a)
	if data == nil {
		body = append(body, '}')
	} else {
		body = appendData(body, data)
	}
	m := Message{
		Subject: requestSubject(prefix, lane{
			cmp.Or(q.Pool, tool.DefaultPool), cmp.Or(q.Priority, tool.Normal), q.Project,
		}),
		Header: structuredHeader(q.Project + "/" + q.ID),
		Data:   body,
	}
	var byReference *Reference
	if _, err := DecodeRequest(m, prefix); err != nil && !errors.As(err, &byReference) {
		return Message{}, err
	}
	return m, nil
}
