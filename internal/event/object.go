package event

import (
	"strconv"

	"github.com/toolworker/toolworker/internal/tool"
)

// objectWriter writes the members of an object.
type objectWriter struct{ b []byte }

func (w *objectWriter) name(name string) {
	if w.b[len(w.b)-1] != '{' {
		w.b = append(w.b, ',')
	}
	w.b = append(append(append(w.b, '"'), name...), '"', ':')
}

func (w *objectWriter) text(name, value string) {
	w.name(name)
	w.b = appendText(w.b, value)
}

func (w *objectWriter) boolean(name string, value bool) {
	w.name(name)
	w.b = strconv.AppendBool(w.b, value)
}

func (w *objectWriter) number(name string, value int64) {
	w.name(name)
	w.b = strconv.AppendInt(w.b, value, 10)
}

func (w *objectWriter) raw(name string, value []byte) {
	w.name(name)
	w.b = append(w.b, value...)
}

func (w *objectWriter) error(name string, e *tool.Error) {
	w.name(name)
	w.b = append(w.b, '{')
	w.text("code", string(e.Code))
	w.text("message", cut(e.Message, maxErrorMessage))
	w.b = append(w.b, '}')
}

// movables writes those of the members that are named and have something in
// their place.
func (w *objectWriter) movables(members []*movable, names ...string) {
	for _, name := range names {
		for _, m := range members {
			if m.name == name && m.encoded != nil {
				w.raw(name, m.encoded)
			}
		}
	}
}

func (w *objectWriter) refs(members []*movable) {
	started := false
	for _, m := range members {
		if !m.moved {
			continue
		}
		if !started {
			w.name("refs")
			w.b = append(w.b, '{')
			started = true
		}
		w.name(m.name)
		w.b = append(w.b, '{')
		w.text("object", m.ref.Object)
		w.number("size_bytes", m.ref.SizeBytes)
		w.text("sha256", m.ref.SHA256)
		w.b = append(w.b, '}')
	}
	if started {
		w.b = append(w.b, '}')
	}
}
