package event

import (
	"io"

	"github.com/go-json-experiment/json"

	"github.com/toolworker/toolworker/internal/tool"
)

// list is a list of a result, encoded as it is read: a hundred thousand
// changes are never held as JSON.
type list[T any] struct {
	items []T
	size  int64
	err   error
}

func newList[T any](items []T) tool.Content {
	if len(items) == 0 {
		return tool.Bytes("[]")
	}
	l := &list[T]{items: items, size: 2}
	var scratch []byte
	for i := range items {
		scratch, l.err = appendItem(scratch[:0], items, i)
		if l.err != nil {
			break
		}
		l.size += int64(len(scratch))
	}
	return l
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
func (l *list[T]) Open() (io.ReadCloser, error) { return &listReader[T]{list: l}, l.err }
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
