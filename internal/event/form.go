package event

import (
	"strings"
)

// form is how a message carries its event.
type form int

const (
	structured form = iota
	binary
)

// formOf says how m carries its event; an error when it is in a format that
// is not spoken.
func formOf(m Message) (form, error) {
	isBinary := false
	for name, values := range m.Header {
		switch {
		case strings.EqualFold(name, HeaderContentType):
			for _, v := range values {
				if len(v) >= len("application/cloudevents") && strings.EqualFold(v[:len("application/cloudevents")], "application/cloudevents") {
					return structured, checkFormat(v)
				}
			}
		case strings.EqualFold(name, "ce-specversion"):
			isBinary = true
		}
	}
	if isBinary {
		return binary, nil
	}
	return structured, nil
}

// checkFormat refuses every format of structured events but JSON.
func checkFormat(mediaType string) error {
	t, _, _ := strings.Cut(mediaType, ";")
	switch strings.ToLower(strings.TrimSpace(t)) {
	case ContentType, "application/cloudevents":
		return nil
	}
	return &Unreadable{Reason: "Content-Type " + cut(mediaType, maxShown) + ": expected " + ContentType}
}
