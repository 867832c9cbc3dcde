package event

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

// maxErrorMessage bounds the message of an error, in bytes: what cannot be
// moved has to leave room.
const maxErrorMessage = 32 << 10

// EncodeResult writes the result of req as an event in structured mode
// (PROTOCOL.md section 5). Members are moved to store, the largest first,
// until the body is at most MaxResult; what is moved is streamed. store may
// be nil where nothing is that large. An error is one of the store, of a
// content, or of ctx.
//
// The headers of the trace are the caller's to add.
func EncodeResult(ctx context.Context, r *tool.Result, req *tool.Request, store PayloadStore, prefix string) (Message, error) {
	members, err := movables(r)
	if err != nil {
		return Message{}, err
	}
	a := resultAttributes(r, req)
	for {
		body, err := appendResult(appendEvent(make([]byte, 0, 1024+inPlace(members)), a), r, req, members)
		if err != nil {
			return Message{}, err
		}
		if body != nil && len(body) <= MaxResult {
			return Message{
				Subject: resultSubject(prefix, r.Project, r.RequestID),
				Header:  resultHeader(r),
				Data:    body,
			}, nil
		}
		largest := largestInPlace(members)
		if largest == nil {
			return Message{}, fmt.Errorf("encode result: %d bytes with everything moved, expected at most %d", len(body), MaxResult)
		}
		if err := largest.move(ctx, store, r.Project, r.RequestID); err != nil {
			return Message{}, err
		}
	}
}

// movables are the movable members that r has, in the order of the event.
func movables(r *tool.Result) ([]*movable, error) {
	members := make([]*movable, 0, 6)
	for _, p := range [...]struct {
		name    string
		payload *tool.Payload
	}{{"output", r.Output}, {"value", r.Value}, {"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if p.payload != nil {
			members = append(members, &movable{name: p.name, isText: !p.payload.Document, content: p.payload.Content})
		}
	}
	files, err := newList(r.Files)
	if err != nil {
		return nil, fmt.Errorf("encode files: %w", err)
	}
	changes, err := newList(r.Changes)
	if err != nil {
		return nil, fmt.Errorf("encode changes: %w", err)
	}
	members = append(members, &movable{name: "files", content: files}, &movable{name: "changes", content: changes})
	for _, m := range members {
		if err := m.encode(); err != nil {
			return nil, err
		}
	}
	return members, nil
}

func inPlace(members []*movable) (size int) {
	for _, m := range members {
		size += len(m.encoded)
	}
	return size
}

// largestInPlace is the member to move next; nil when all were moved.
func largestInPlace(members []*movable) (largest *movable) {
	for _, m := range members {
		if !m.moved && (largest == nil || m.size() > largest.size()) {
			largest = m
		}
	}
	return largest
}

func resultAttributes(r *tool.Result, req *tool.Request) *attributes {
	return &attributes{value: [attributeCount]string{
		id: r.RequestID + ".result", source: Source(r.Worker), eventType: TypeResult, subject: toolName(r, req),
		eventTime: formatTime(time.Now()), dataContentType: "application/json",
		traceParent: req.TraceParent, traceState: req.TraceState,
		correlationID: correlation(req), causationID: r.RequestID,
	}}
}

// Source is the source of the events of a worker.
func Source(worker string) string { return "/toolworker/" + url.PathEscape(worker) }

// anyBytes: names of files need not be UTF-8, and must not cost the result.
var anyBytes = jsontext.AllowInvalidUTF8(true)

func correlation(req *tool.Request) string {
	if req.CorrelationID != "" {
		return req.CorrelationID
	}
	return req.ID
}

// toolName is "" when the request could not be read so far.
func toolName(r *tool.Result, req *tool.Request) string {
	if req.Tool == "" && req.Inline == nil {
		return ""
	}
	if r.Tool != "" {
		return r.Tool
	}
	return req.Name()
}

func resultHeader(r *tool.Result) map[string][]string {
	h := structuredHeader(r.Project + "/" + r.RequestID + "/result")
	var run [16]byte
	_, _ = rand.Read(run[:])
	h[HeaderExecution] = []string{hex.EncodeToString(run[:])}
	return h
}

// appendResult appends the data of a result. It gives nil when a member
// cannot stay in its place.
func appendResult(b []byte, r *tool.Result, req *tool.Request, members []*movable) ([]byte, error) {
	for _, m := range members {
		if m.encoded == nil && !m.moved {
			return nil, nil
		}
	}
	w := objectWriter{append(b, `,"data":{`...)}
	w.text("request_id", r.RequestID)
	w.text("project", r.Project)
	if r.PlanID != "" {
		w.text("plan_id", r.PlanID)
	}
	w.text("tool", toolName(r, req))
	w.text("status", string(r.Status()))
	w.boolean("success", r.Error == nil)
	w.movables(members, "output", "value", "stdout", "stderr")
	w.boolean("truncated", r.Truncated)
	if r.Error != nil {
		w.error("error", r.Error)
	}
	w.raw("duration_ms", strconv.AppendFloat(nil, milliseconds(r.Duration), 'f', -1, 64))
	w.number("attempt", int64(r.Attempt))
	w.text("worker", r.Worker)
	w.movables(members, "files", "changes")
	if r.ChangesTruncated {
		w.boolean("changes_truncated", true)
	}
	w.refs(members)
	metadata, err := json.Marshal(&r.Metadata, anyBytes)
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	w.raw("metadata", metadata)
	return append(w.b, "}}"...), nil
}

// milliseconds is d with the precision of a microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
