package capture

import (
	"sync"

	"github.com/toolworker/toolworker/internal/tool"
)

// Options says what a Writer keeps and who sees it.
type Options struct {
	// Limit is how many bytes are kept; the rest is discarded. 0: all.
	Limit int64
	// Memory and Dir are those of NewSpool.
	Memory int
	Dir    string
	// Live receives what is kept as it arrives, and the number of bytes of
	// this stream before it. It must not keep p.
	Live func(offset int64, p []byte)
}

// Writer takes a stream of output of any length. It never refuses any, so
// that a tool is never blocked or ended by its own output. It is safe for
// concurrent use.
type Writer struct {
	limit int64
	live  func(int64, []byte)

	mu        sync.Mutex
	spool     *Spool
	text      counter
	truncated bool
	err       error
}

// NewWriter returns a Writer that has kept nothing yet.
func NewWriter(o Options) *Writer {
	return &Writer{limit: o.Limit, live: o.Live, spool: NewSpool(o.Dir, o.Memory)}
}

// Write keeps of p what the limit allows. It always reports len(p) and no
// error: what went wrong is reported by Finish.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := p
	if room := w.limit - w.spool.Size(); w.limit > 0 && int64(len(p)) > room {
		keep, w.truncated = p[:room], true
	}
	if len(keep) == 0 || w.err != nil {
		return len(p), nil
	}
	offset := w.spool.Size()
	if _, w.err = w.spool.Write(keep); w.err != nil {
		_ = w.spool.Close()
		return len(p), nil
	}
	w.text.count(keep)
	if w.live != nil {
		w.live(offset, keep)
	}
	return len(p), nil
}

// Finish ends the writing and returns what was kept, to be closed by the
// caller. An error is a *tool.Fault; nothing is kept then.
func (w *Writer) Finish() (*Captured, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil, w.err
	}
	if w.truncated {
		// The cut may have split a character: what is left of it is dropped.
		w.spool.truncate(w.spool.Size() - int64(len(w.text.pending())))
		w.text.drop()
	}
	return &Captured{Spool: w.spool, Truncated: w.truncated, textSize: w.text.total()}, nil
}

// Captured is what a Writer kept.
type Captured struct {
	*Spool
	// Truncated: there was more than the limit. The cut is then at a
	// character boundary.
	Truncated bool
	textSize  int64
}

var _ tool.Content = (*Captured)(nil)
