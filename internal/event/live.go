package event

import (
	"fmt"
	"strconv"
	"time"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// MaxChunk is how much text one output event carries at most, in bytes of
// UTF-8.
const MaxChunk = 32 << 10

// Started is the data of the live event that a request was started.
type Started struct {
	RequestID   string           `json:"request_id"`
	Worker      string           `json:"worker"`
	Attempt     int              `json:"attempt"`
	Environment tool.Environment `json:"environment"`
}

// Output is the data of the live event that a tool wrote something.
type Output struct {
	RequestID string `json:"request_id"`
	Attempt   int    `json:"attempt"`
	Stream    string `json:"stream"` // "stdout" or "stderr"
	Offset    int64  `json:"offset"` // raw bytes of that stream before
	Text      string `json:"text"`
}

// Retrying is the data of the live event that a request will be started again.
type Retrying struct {
	RequestID string      `json:"request_id"`
	Attempt   int         `json:"attempt"` // the one that failed
	DelayMS   float64     `json:"delay_ms"`
	Error     *tool.Error `json:"error"`
}

// Live is a live event as it was received: exactly one of the pointers is set.
type Live struct {
	Event    EventInfo
	Started  *Started
	Output   *Output
	Retrying *Retrying
}

// LiveEvents writes the live events of one attempt at a request (PROTOCOL.md
// section 7). It is for one goroutine at a time.
type LiveEvents struct {
	req     *tool.Request
	prefix  string
	worker  string
	attempt int
	chunks  int
	streams map[string]*liveStream
}

// NewLiveEvents writes the events of an attempt, which counts from 1, on a worker.
func NewLiveEvents(req *tool.Request, prefix, worker string, attempt int) *LiveEvents {
	return &LiveEvents{req: req, prefix: prefix, worker: worker, attempt: attempt, streams: map[string]*liveStream{}}
}

// Started is the event that the attempt begins in an environment.
func (l *LiveEvents) Started(env tool.Environment) Message {
	w := objectWriter{[]byte{'{'}}
	w.text("request_id", l.req.ID)
	w.text("worker", l.worker)
	w.number("attempt", int64(l.attempt))
	w.text("environment", string(env))
	return l.message(TypeStarted, "started."+strconv.Itoa(l.attempt), w.b)
}

// Retrying is the event that the attempt failed and another follows after
// delay.
func (l *LiveEvents) Retrying(delay time.Duration, why *tool.Error) Message {
	w := objectWriter{[]byte{'{'}}
	w.text("request_id", l.req.ID)
	w.number("attempt", int64(l.attempt))
	w.raw("delay_ms", strconv.AppendFloat(nil, milliseconds(delay), 'f', -1, 64))
	w.error("error", why)
	return l.message(TypeRetrying, "retrying."+strconv.Itoa(l.attempt), w.b)
}

// Output are the events of p, which follows offset raw bytes of a stream
// ("stdout" or "stderr"). A character that p ends within waits for what
// follows; bytes that are no UTF-8 become U+FFFD. p is not kept.
func (l *LiveEvents) Output(stream string, offset int64, p []byte) []Message {
	s := l.streams[stream]
	if s == nil {
		s = &liveStream{}
		l.streams[stream] = s
	}
	return l.outputs(stream, s.write(offset, p))
}

// Flush are the events of characters that never were completed.
func (l *LiveEvents) Flush() []Message {
	var messages []Message
	for _, stream := range [...]string{"stdout", "stderr"} {
		if s := l.streams[stream]; s != nil {
			messages = append(messages, l.outputs(stream, s.flush())...)
		}
	}
	return messages
}

func (l *LiveEvents) outputs(stream string, chunks []chunk) []Message {
	messages := make([]Message, 0, len(chunks))
	for _, c := range chunks {
		w := objectWriter{make([]byte, 0, 256+len(c.text))}
		w.b = append(w.b, '{')
		w.text("request_id", l.req.ID)
		w.number("attempt", int64(l.attempt))
		w.text("stream", stream)
		w.number("offset", c.offset)
		w.name("text")
		w.b = appendText(w.b, c.text)
		messages = append(messages, l.message(TypeOutput, fmt.Sprintf("output.%d.%d", l.attempt, l.chunks), w.b))
		l.chunks++
	}
	return messages
}

// message makes the event of unfinished data.
func (l *LiveEvents) message(kind, suffix string, data []byte) Message {
	a := attributes{value: [attributeCount]string{
		id: l.req.ID + "." + suffix, source: Source(l.worker), eventType: kind, subject: l.req.Name(),
		eventTime: formatTime(time.Now()), dataContentType: "application/json",
		traceParent: l.req.TraceParent, traceState: l.req.TraceState,
		correlationID: correlation(l.req), causationID: l.req.ID,
	}}
	body := appendEvent(make([]byte, 0, 512+len(data)), &a)
	return Message{
		Subject: liveSubject(l.prefix, l.req.Project, l.req.ID),
		Header:  structuredHeader(""),
		Data:    appendData(body, append(data, '}')),
	}
}

// DecodeLive reads a live event. An error lists what violates the schema.
func DecodeLive(m Message) (*Live, error) {
	e, err := readEvent(m)
	if err != nil {
		return nil, fmt.Errorf("decode live event: %w", err)
	}
	live := &Live{Event: e.info()}
	switch t := e.value[eventType]; t {
	case TypeStarted:
		live.Started = &Started{}
		err = decodeDocument(schemas.Started, e.data, live.Started)
	case TypeOutput:
		live.Output = &Output{}
		err = decodeDocument(schemas.Output, e.data, live.Output)
	case TypeRetrying:
		live.Retrying = &Retrying{}
		err = decodeDocument(schemas.Retrying, e.data, live.Retrying)
	default:
		err = fmt.Errorf("type %q: expected %s, %s or %s", cut(t, maxShown), TypeStarted, TypeOutput, TypeRetrying)
	}
	if err != nil {
		return nil, fmt.Errorf("decode live event: %w", err)
	}
	return live, nil
}
