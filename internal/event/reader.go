package event

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/schemas"
)

// reader reads strict JSON in place: members are unique, texts valid UTF-8.
type reader struct {
	d    *jsontext.Decoder
	b    bytes.Buffer
	body []byte
}

// readers are kept: one costs more than reading a small request with it.
var readers = sync.Pool{New: func() any {
	return &reader{d: jsontext.NewDecoder(new(bytes.Buffer))}
}}

// newReader reads body, which must not change before free.
func newReader(body []byte) *reader {
	r := readers.Get().(*reader)
	r.body = body
	r.b = *bytes.NewBuffer(body)
	r.d.Reset(&r.b)
	return r
}

func (r *reader) free() {
	r.body = nil
	r.b = bytes.Buffer{}
	r.d.Reset(&r.b)
	readers.Put(r)
}

// misfit is the first thing that a reader refuses.
type misfit schemas.Fault

func (m *misfit) Error() string { return schemas.Fault(*m).String() }

// refuse makes the error that the value just read, or about to be, is no
// expected one.
func (r *reader) refuse(format string, args ...any) error {
	return &misfit{string(r.d.StackPointer()), fmt.Sprintf(format, args...)}
}

// fault is err, which a reader returned, with its pointer below base.
func fault(err error, base string) schemas.Fault {
	var m *misfit
	var s *jsontext.SyntacticError
	switch {
	case errors.As(err, &m):
		return schemas.Fault{Pointer: base + m.Pointer, Message: m.Message}
	case errors.As(err, &s):
		return schemas.Fault{Pointer: base + string(s.JSONPointer),
			Message: fmt.Sprintf("no strict JSON: %s, at byte %d", cut(s.Err.Error(), maxShown), s.ByteOffset)}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return schemas.Fault{Pointer: base, Message: "no strict JSON: it ends too early"}
	}
	return schemas.Fault{Pointer: base, Message: cut(err.Error(), 2*maxShown)}
}

// object reads an object and calls member with each name, to read its value.
func (r *reader) object(member func(name []byte) error) error {
	t, err := r.d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != '{' {
		return r.refuse("expected an object")
	}
	for r.d.PeekKind() != '}' {
		quoted, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		name := quoted[1 : len(quoted)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			if name, err = jsontext.AppendUnquote(nil, quoted); err != nil {
				return err
			}
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err = r.d.ReadToken()
	return err
}

// end makes sure that nothing follows the document.
func (r *reader) end() error {
	switch _, err := r.d.ReadToken(); {
	case err == nil:
		return errors.New("something follows the document")
	case !errors.Is(err, io.EOF):
		return err
	}
	return nil
}

// raw reads one value as it was sent.
func (r *reader) raw() ([]byte, error) {
	v, err := r.d.ReadValue()
	if err != nil {
		return nil, err
	}
	end := r.d.InputOffset()
	return r.body[end-int64(len(v)) : end : end], nil
}

func (r *reader) text(s *string) error {
	t, err := r.d.ReadToken()
	if err != nil {
		return err
	}
	if t.Kind() != '"' {
		return r.refuse("expected a text")
	}
	*s = t.String()
	return nil
}

func (r *reader) boolean(b *bool) error {
	t, err := r.d.ReadToken()
	if err != nil {
		return err
	}
	if k := t.Kind(); k != 't' && k != 'f' {
		return r.refuse("expected true or false")
	}
	*b = t.Bool()
	return nil
}
