package event

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

// PayloadStore keeps the members of results that are too large for a message
// (PROTOCOL.md sections 1 and 5).
type PayloadStore interface {
	// Put stores what r gives, until io.EOF, as <project>/<request
	// id>/<member> and returns where it is. r gives the UTF-8 text of a text
	// and the JSON of a document. Putting it again replaces it.
	Put(ctx context.Context, project, requestID, member string, r io.Reader) (tool.Ref, error)
}

// MaxResult is how large the body of a result may be, in bytes.
const MaxResult = 512 << 10

// MaxHead is how much of a moved text stays in place, in bytes of UTF-8.
const MaxHead = 8 << 10

// movable is a member of a result that may be moved to the payload store.
type movable struct {
	name string
	// isText: content is quoted in place, and keeps a head when moved.
	isText  bool
	content tool.Content
	// encoded is the member's JSON in place; nil when it is larger than a
	// result may be.
	encoded []byte
	moved   bool
	ref     tool.Ref
}

// encode prepares the member for its place in the event. What is too large
// for that is not read.
func (m *movable) encode() error {
	if m.content.Size() > MaxResult {
		return nil
	}
	content, err := readAll(m.content)
	if err != nil {
		return fmt.Errorf("read %s: %w", m.name, err)
	}
	if m.isText {
		m.encoded = appendTextUpTo(nil, content, MaxResult)
		return nil
	}
	if !jsontext.Value(content).IsValid() {
		return fmt.Errorf("encode %s: the document is no strict JSON", m.name)
	}
	m.encoded = content
	return nil
}

// size is how much of the event the member takes; a member that cannot stay
// takes more than there is.
func (m *movable) size() int64 {
	if m.encoded == nil {
		return max(m.content.Size(), MaxResult+1)
	}
	return int64(len(m.encoded))
}

// move streams the member to the store and leaves the head of a text.
func (m *movable) move(ctx context.Context, store PayloadStore, project, id string) error {
	if store == nil {
		return fmt.Errorf("move %s of %d bytes: there is no payload store", m.name, m.content.Size())
	}
	r, err := m.content.Open()
	if err != nil {
		return fmt.Errorf("open %s: %w", m.name, err)
	}
	defer r.Close()
	metered := meter{r: r, head: make([]byte, 0, MaxHead), hash: sha256.New()}
	ref, err := store.Put(ctx, project, id, m.name, &metered)
	if err != nil {
		return fmt.Errorf("store %s: %w", m.name, err)
	}
	if metered.size != m.content.Size() {
		return fmt.Errorf("store %s: %d bytes were read, expected %d", m.name, metered.size, m.content.Size())
	}
	m.moved = true
	m.ref = tool.Ref{Object: ref.Object, SizeBytes: metered.size, SHA256: hex.EncodeToString(metered.hash.Sum(nil))}
	m.encoded = nil
	if m.isText {
		m.encoded = appendText(nil, wholeRunes(metered.head))
	}
	return nil
}

// meter counts and hashes what is read, and keeps its head.
type meter struct {
	r    io.Reader
	head []byte
	hash hash.Hash
	size int64
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.size += int64(n)
	m.hash.Write(p[:n])
	m.head = append(m.head, p[:min(n, cap(m.head)-len(m.head))]...)
	return n, err
}

// readAll reads a content that is known to be small.
func readAll(c tool.Content) ([]byte, error) {
	if b, ok := c.(tool.Bytes); ok {
		return b, nil
	}
	r, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, c.Size())
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	return b, nil
}

// appendTextUpTo is appendText; it gives nil when that needs more than most
// bytes.
func appendTextUpTo(b, text []byte, most int) []byte {
	const step = 64 << 10
	start := len(b)
	b = append(b, '"')
	for len(text) > 0 {
		part := text
		if len(part) > step {
			part = wholeRunes(part[:step])
		}
		text = text[len(part):]
		open := len(b) - 1 // where the quote of the part goes
		last := b[open]
		b = appendText(b[:open], part)
		b[open] = last
		b = b[:len(b)-1]
		if len(b)-start+1 > most {
			return nil
		}
	}
	return append(b, '"')
}

// wholeRunes is b without a rune that is cut off at its end.
func wholeRunes(b []byte) []byte {
	for back := 1; back <= utf8.UTFMax && back <= len(b); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				return b[:at]
			}
			return b
		}
	}
	return b
}
