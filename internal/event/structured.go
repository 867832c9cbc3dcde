package event

import (
	"encoding/base64"

	"github.com/go-json-experiment/json/jsontext"
)

// rawEvent is an event whose data has not been looked into.
type rawEvent struct {
	attributes
	// data is one JSON document; nil when the event has none.
	data []byte
}

// readStructured reads an event in the JSON format of CloudEvents. The error
// is the first thing that is wrong.
func readStructured(body []byte, e *rawEvent) error {
	r := newReader(body)
	defer r.free()
	err := r.object(func(name []byte) error {
		switch string(name) {
		case "data":
			return r.eventData(e)
		case "data_base64":
			return r.eventBase64(e)
		}
		return r.eventAttribute(name, e)
	})
	if err != nil {
		return err
	}
	return r.end()
}

func (r *reader) eventData(e *rawEvent) error {
	data, err := r.raw()
	if err != nil || string(data) == "null" {
		return err
	}
	if e.data != nil {
		return r.refuse("both data and data_base64")
	}
	e.data = data
	return nil
}

func (r *reader) eventBase64(e *rawEvent) error {
	if r.d.PeekKind() == 'n' {
		return r.d.SkipValue()
	}
	var encoded string
	if err := r.text(&encoded); err != nil {
		return err
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return r.refuse("expected base64 with padding")
	}
	if e.data != nil {
		return r.refuse("both data and data_base64")
	}
	e.data = data
	return nil
}

// eventAttribute reads an attribute; extensions are read over.
func (r *reader) eventAttribute(name []byte, e *rawEvent) error {
	at := attributeNamed(name)
	if at == noAttribute {
		if !validAttributeName(name) {
			return r.refuse("no name of an attribute: expected lower-case letters and digits")
		}
		return r.extension()
	}
	if r.d.PeekKind() == 'n' {
		return r.d.SkipValue()
	}
	e.set[at] = true
	return r.text(&e.value[at])
}

// extension reads over the value of an extension, which is a scalar.
func (r *reader) extension() error {
	switch k := r.d.PeekKind(); k {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		return r.refuse("expected a text, a number, true or false")
	}
	return r.d.SkipValue()
}

// validAttributeName reports whether CloudEvents allows an attribute of this
// name.
func validAttributeName(name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) > 0
}
