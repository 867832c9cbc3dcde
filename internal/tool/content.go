package tool

import (
	"bytes"
	"io"
)

// Content is a text or a document of any size: in memory while small,
// spooled to a file when large. It can be opened any number of times until
// it is closed.
type Content interface {
	// Size is the number of bytes that Open gives.
	Size() int64
	Open() (io.ReadCloser, error)
	// Close frees what is held; it is idempotent.
	Close() error
}

// Bytes is Content held in memory.
type Bytes []byte

// Size implements Content.
func (b Bytes) Size() int64 { return int64(len(b)) }

// Open implements Content.
func (b Bytes) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }

// Close implements Content.
func (b Bytes) Close() error { return nil }

// Payload is one of the members output, value, stdout and stderr of a result.
type Payload struct {
	// Document: Content is one strict JSON document. Otherwise it is text,
	// valid UTF-8, not yet quoted.
	Document bool
	Content  Content
}

// Text returns a Payload that holds s as text.
func Text(s string) *Payload { return &Payload{Content: Bytes(s)} }

// Document returns a Payload that holds one strict JSON document.
func Document(json []byte) *Payload { return &Payload{Document: true, Content: Bytes(json)} }
