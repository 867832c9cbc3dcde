package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// document is one request as it was read: the data of a request, or a whole
// CloudEvent. It is sent as it is, right or wrong: the result tells.
type document struct {
	place string // file and number, for errors
	raw   jsontext.Value

	whole   bool // a CloudEvent
	id      string
	project string
	name    string // of the tool, where it can be read
	data    jsontext.Value
	parent  string // the event's own trace context
	state   string
}

// documents reads the JSON values of files, "-" being stdin, one after the
// other. The sequence ends with the first error.
func documents(files []string, stdin io.Reader) iter.Seq2[*document, error] {
	return func(yield func(*document, error) bool) {
		for _, name := range files {
			if !readDocuments(name, stdin, yield) {
				return
			}
		}
	}
}

func readDocuments(name string, stdin io.Reader, yield func(*document, error) bool) bool {
	r := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			yield(nil, err)
			return false
		}
		defer f.Close()
		r = f
	}
	d := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true))
	for n := 1; ; n++ {
		raw, err := d.ReadValue()
		if errors.Is(err, io.EOF) {
			return true
		}
		place := fmt.Sprintf("%s: document %d", name, n)
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", place, err))
			return false
		}
		doc, err := newDocument(place, raw.Clone())
		if !yield(doc, err) || err != nil {
			return false
		}
	}
}

// newDocument reads what is needed to send a request. A member of another
// type than it should have counts as absent.
func newDocument(place string, raw jsontext.Value) (*document, error) {
	if raw.Kind() != jsontext.KindBeginObject {
		return nil, fmt.Errorf("%s: expected a JSON object", place)
	}
	d := &document{place: place, raw: raw, data: raw}
	members := membersOf(raw)
	if members["specversion"] != nil {
		d.whole, d.id, d.data = true, textOf(members["id"]), dataOf(members)
		d.parent, d.state = textOf(members["traceparent"]), textOf(members["tracestate"])
		if err := tool.CheckName("id", d.id); err != nil {
			return nil, fmt.Errorf("%s: %w", place, err)
		}
		members = membersOf(d.data)
	}
	d.project = textOf(members["project"])
	d.name = cmp.Or(textOf(members["tool"]), tool.InlineName)
	return d, nil
}

// dataOf is the data of an event, whichever way it is written; nil when it
// has none.
func dataOf(event map[string]jsontext.Value) jsontext.Value {
	if data := event["data"]; data != nil && data.Kind() != jsontext.KindNull {
		return data
	}
	data, err := base64.StdEncoding.DecodeString(textOf(event["data_base64"]))
	if err != nil || len(data) == 0 {
		return nil
	}
	return data
}

func membersOf(object jsontext.Value) map[string]jsontext.Value {
	var members map[string]jsontext.Value
	_ = json.Unmarshal(object, &members, jsontext.AllowDuplicateNames(true))
	return members
}

func textOf(value jsontext.Value) string {
	var text string
	_ = json.Unmarshal(value, &text)
	return text
}

// eventData is an event around the data of a request.
type eventData struct {
	SpecVersion     string         `json:"specversion"`
	ID              string         `json:"id"`
	Source          string         `json:"source"`
	Type            string         `json:"type"`
	Time            time.Time      `json:"time"`
	DataContentType string         `json:"datacontenttype"`
	TraceParent     string         `json:"traceparent,omitzero"`
	TraceState      string         `json:"tracestate,omitzero"`
	DataRef         string         `json:"dataref,omitzero"`
	Data            jsontext.Value `json:"data,omitzero"`
}

// sendDocument publishes a document into a lane.
func (s *sender) sendDocument(ctx context.Context, d *document, lane laneFlags) (err error) {
	if d.id == "" {
		if d.id, err = newID(); err != nil {
			return err
		}
	}
	subject := s.client.Names.RequestSubject(string(lane.Pool), tool.Priority(lane.Priority), d.project)
	ctx = trace.Extract(ctx, nil, d.parent, d.state)
	ctx, span := s.spans.SendRequest(ctx, trace.Message{
		Subject: subject, Size: len(d.raw), ID: d.id, Type: event.TypeRequest, EventSubject: d.name,
	})
	defer span.End()
	body, err := s.body(ctx, d)
	if err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	err = s.publish(ctx, d.project, d.id, event.Message{
		Subject: subject, Header: map[string][]string{event.HeaderContentType: {event.ContentType}}, Data: body,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", d.place, err)
	}
	return nil
}

// body is the event of a document. What does not fit into a message is put
// into the project's store of large inputs.
func (s *sender) body(ctx context.Context, d *document) ([]byte, error) {
	fits := len(d.raw) <= queue.MaxRequestSize-headerRoom
	if d.whole && fits {
		return d.raw, nil
	}
	if !d.whole {
		e := eventData{
			SpecVersion: event.SpecVersion, ID: d.id, Source: source(), Type: event.TypeRequest,
			Time: time.Now().UTC(), DataContentType: "application/json",
		}
		e.TraceParent, e.TraceState = trace.Extension(ctx)
		if fits {
			e.Data = d.data
			return json.Marshal(e, jsontext.AllowDuplicateNames(true))
		}
		var err error
		if e.DataRef, err = s.store(ctx, d); err != nil {
			return nil, err
		}
		return json.Marshal(e)
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(d.raw, &members); err != nil {
		return nil, err
	}
	ref, err := s.store(ctx, d)
	if err != nil {
		return nil, err
	}
	delete(members, "data")
	delete(members, "data_base64")
	if members["dataref"], err = json.Marshal(ref); err != nil {
		return nil, err
	}
	return json.Marshal(members, json.Deterministic(true))
}

// store puts the data of a document into its project's store.
func (s *sender) store(ctx context.Context, d *document) (dataRef string, err error) {
	if len(d.data) == 0 || len(d.data) > event.MaxReferenced {
		return "", fmt.Errorf("%w: %d bytes of data", queue.ErrTooLarge, len(d.data))
	}
	if err := s.storeInput(ctx, d.project, d.id, d.data); err != nil {
		return "", err
	}
	sum := sha256.Sum256(d.data)
	return s.client.Names.InputRef(d.project, d.id, hex.EncodeToString(sum[:])), nil
}
