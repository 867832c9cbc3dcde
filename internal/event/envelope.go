package event

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// appendEvent appends an event in the JSON format of CloudEvents up to its
// data, which the caller appends together with a closing brace. Attributes
// without a value are left out.
func appendEvent(b []byte, a *attributes) []byte {
	b = append(b, `{"specversion":"1.0"`...)
	for at := id; at < attributeCount; at++ {
		if v := a.value[at]; v != "" {
			b = append(b, `,"`...)
			b = append(b, attributeNames[at]...)
			b = append(b, `":`...)
			b = appendText(b, v)
		}
	}
	return b
}

// appendData appends the data of an event and ends it.
func appendData(b, data []byte) []byte {
	b = append(b, `,"data":`...)
	return append(append(b, data...), '}')
}

// appendText appends a JSON string; what is no UTF-8 becomes U+FFFD.
func appendText[T ~[]byte | ~string](b []byte, s T) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// structuredHeader are the headers of an event in structured mode; msgID may
// be "".
func structuredHeader(msgID string) map[string][]string {
	h := map[string][]string{HeaderContentType: {ContentType}}
	if msgID != "" {
		h[HeaderMsgID] = []string{msgID}
	}
	return h
}
