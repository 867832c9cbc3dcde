package event

import (
	"io"

	"github.com/go-json-experiment/json"

	"github.com/toolworker/toolworker/internal/tool"
)

// list is a long list of a result, encoded as it is read: a hundred thousand
// changes are never held as JSON.
type list[T any] struct {
	items []T
	size  int64
}

// newList is a list as a JSON document: encoded at once as long as it may
// stay in the event.
func newList[T any](items []T) (tool.Content, error) {
	if len(items) == 0 {
		return tool.Bytes("[]"), nil
	}
	encoded := make([]byte, 1, 128*min(len(items), MaxResult/128))
	encoded[0] = '['
	size, long := int64(len("[]")), false
	for i := range items {
		before := len(encoded)
		var err error
		if encoded, err = appendItem(encoded, items, i); err != nil {
			return nil, err
		}
		size += int64(len(encoded) - before)
		if long = long || size > MaxResult; long {
			encoded = encoded[:0] // from here on only the size is wanted
		}
	}
	if long {
		return &list[T]{items, size}, nil
	}
	return tool.Bytes(append(encoded, ']')), nil
}

// appendItem appends an item, with the comma before it.
func appendItem[T any](b []byte, items []T, i int) ([]byte, error) {
	item, err := json.Marshal(&items[i], anyBytes)
	if err != nil {
		return b, err
	}
	if i > 0 {
		b = append(b, ',')
	}
	return append(b, item...), nil
}

func (l *list[T]) Size() int64                  { return l.size }
func (l *list[T]) Open() (io.ReadCloser, error) { return &listReader[T]{list: l}, nil }
func (l *list[T]) Close() error                 { return nil }

type listReader[T any] struct {
	*list[T]
	at      int // next item
	started bool
	ended   bool
	pending []byte
	buffer  []byte
}

func (r *listReader[T]) Read(p []byte) (int, error) {
	if len(r.pending) == 0 {
		if r.ended {
			return 0, io.EOF
		}
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.pending)
	r.pending = r.pending[n:]
	return n, nil
}

// fill encodes some items ahead.
func (r *listReader[T]) fill() error {
	const ahead = 16 << 10
	r.buffer = r.buffer[:0]
	if !r.started {
		r.started = true
		r.buffer = append(r.buffer, '[')
	}
	var err error
	for ; r.at < len(r.items) && len(r.buffer) < ahead; r.at++ {
		if r.buffer, err = appendItem(r.buffer, r.items, r.at); err != nil {
			return err
		}
	}
	if r.at == len(r.items) {
		r.ended = true
		r.buffer = append(r.buffer, ']')
	}
	r.pending = r.buffer
	return nil
}
