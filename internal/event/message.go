package event

import "strings"

// Message is one message as it travels: where it goes, its headers in the
// letter case they were sent in, and its body.
type Message struct {
	Subject string
	Header  map[string][]string
	Data    []byte
}

// Headers that requests and results carry.
const (
	HeaderContentType = "Content-Type"
	HeaderMsgID       = "Nats-Msg-Id"
	// HeaderExecution is a random id of the run that a result comes from: it
	// tells a worker its own result from somebody else's.
	HeaderExecution = "Tool-Execution"
)

// ContentType is the media type of events in structured mode.
const ContentType = "application/cloudevents+json"

// Get returns the first value of a header whatever its letter case; "" when
// there is none.
func (m Message) Get(name string) string {
	if values := m.Header[name]; len(values) > 0 {
		return values[0]
	}
	for key, values := range m.Header {
		if len(values) > 0 && strings.EqualFold(key, name) {
			return values[0]
		}
	}
	return ""
}
