package agent

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Kind says what a frame is. The values are shared by a worker and the agent
// that it placed itself, so they are never seen by another version.
type kind uint8

const (
	kindHello  kind = iota + 1 // agent: helloDoc
	kindRun                    // worker: runHeader, then the beginning of its body
	kindBody                   // worker: more of the body of a run
	kindCancel                 // worker: end the run, or the read
	kindCredit                 // worker: so many more bytes of output may be sent, 4 bytes
	kindPing                   // worker: answer with a pong
	kindRead                   // worker: readDoc
	kindStdout                 // agent: output of a run, content of a file
	kindStderr                 // agent: output of a run
	kindExit                   // agent: a piece of the exitDoc or fileDoc; the first byte is 1 when more follows
	kindPong                   // agent
	kindStage                  // worker: runHeader of a stageDoc and a tar, then the beginning of its body
	kindEnd                    // one more than the last
)

const (
	// maxPayload bounds the payload of a frame in bytes.
	maxPayload = 64 << 10
	headerSize = 1 + 4 + 4
)

// errProtocol is what every breach of the frame format or of the order of
// frames wraps.
var errProtocol = errors.New("protocol violation")

// frame is one message. A zero id belongs to the session, others to a run.
type frame struct {
	kind    kind
	id      uint32
	payload []byte
}

// frameReader reads frames. The payload of a frame is valid until the next call.
type frameReader struct {
	r   *bufio.Reader
	buf [maxPayload]byte
	hdr [headerSize]byte
}

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{r: bufio.NewReaderSize(r, maxPayload+headerSize)}
}

// quote returns an error that quotes the beginning of what was not understood.
func (f *frameReader) quote() error {
	n := f.r.Buffered()
	rest, _ := f.r.Peek(min(n, 512))
	text := strings.ToValidUTF8(strings.TrimSpace(string(f.hdr[:])+string(rest)), "\uFFFD")
	text = strings.Trim(text, "\x00")
	if text == "" {
		return nil
	}
	return fmt.Errorf("instead of a frame: %q", text)
}

// next returns io.EOF at a clean end between two frames.
func (f *frameReader) next() (frame, error) {
	if _, err := io.ReadFull(f.r, f.hdr[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return frame{}, fmt.Errorf("%w: stream ends inside a frame header", errProtocol)
		}
		return frame{}, err
	}
	k := kind(f.hdr[0])
	size := binary.BigEndian.Uint32(f.hdr[5:])
	if k == 0 || k >= kindEnd {
		return frame{}, fmt.Errorf("%w: frame of unknown kind %d", errProtocol, k)
	}
	if size > maxPayload {
		return frame{}, fmt.Errorf("%w: frame of %d bytes, at most %d allowed", errProtocol, size, maxPayload)
	}
	payload := f.buf[:size]
	if _, err := io.ReadFull(f.r, payload); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return frame{}, fmt.Errorf("%w: stream ends inside a frame", errProtocol)
		}
		return frame{}, err
	}
	return frame{kind: k, id: binary.BigEndian.Uint32(f.hdr[1:]), payload: payload}, nil
}

// frameWriter writes frames whole, one at a time, from any goroutine.
type frameWriter struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
	err error // the first error; the stream is of no use after it
}

func newFrameWriter(w io.Writer) *frameWriter { return &frameWriter{w: w} }

// write sends one frame whose payload is the concatenation of parts, which
// may be reused at once.
func (f *frameWriter) write(k kind, id uint32, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > maxPayload {
		return fmt.Errorf("%w: payload of %d bytes, at most %d allowed", errProtocol, size, maxPayload)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return f.err
	}
	f.buf = append(f.buf[:0], byte(k))
	f.buf = binary.BigEndian.AppendUint32(f.buf, id)
	f.buf = binary.BigEndian.AppendUint32(f.buf, uint32(size))
	for _, p := range parts {
		f.buf = append(f.buf, p...)
	}
	_, f.err = f.w.Write(f.buf)
	return f.err
}

// writePieces sends a document as frames whose first byte says whether more follows.
func (f *frameWriter) writePieces(k kind, id uint32, doc []byte) error {
	for {
		n := min(len(doc), maxPayload-1)
		more := byte(0)
		if n < len(doc) {
			more = 1
		}
		if err := f.write(k, id, []byte{more}, doc[:n]); err != nil {
			return err
		}
		if doc = doc[n:]; more == 0 {
			return nil
		}
	}
}
