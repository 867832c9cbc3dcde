package capture

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// MaxOpenNames bounds the member names of the objects that are open at
	// once in a document, since duplicates are found by remembering them.
	MaxOpenNames = 1 << 20
	// smallDocument is up to which size any number of documents are read at once.
	smallDocument = 1 << 20
)

// large holds a token for each document above smallDocument that may be read
// at the same time: its names and its longest string are held in memory.
var large = make(chan struct{}, 2)

// Document reports whether c is exactly one strict JSON document (RFC 7493):
// valid UTF-8, no duplicate names, no NaN, at most 10,000 levels and
// MaxOpenNames names, nothing but white space around it. The error is that
// of reading c, or the cause of ctx.
func Document(ctx context.Context, c tool.Content) (bool, error) {
	if c.Size() == 0 {
		return false, nil
	}
	if c.Size() > smallDocument {
		select {
		case large <- struct{}{}:
			defer func() { <-large }()
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
	r, err := c.Open()
	if err != nil {
		return false, err
	}
	defer r.Close()
	source := &watched{ctx: ctx, r: r}
	err = readDocument(jsontext.NewDecoder(source), MaxOpenNames)
	if source.err != nil {
		return false, fmt.Errorf("read output: %w", source.err)
	}
	return err == nil, nil
}

func readDocument(dec *jsontext.Decoder, maxNames int64) error {
	var names int64 // of the objects that are open
	for done := false; !done; done = dec.StackDepth() == 0 {
		object, length := dec.StackIndex(dec.StackDepth())
		token, err := dec.ReadToken()
		switch {
		case err != nil:
			return err
		case token.Kind() == '}':
			names -= length / 2
		case object == '{' && length%2 == 0:
			names++
		}
		if names > maxNames {
			return errors.New("too many names")
		}
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// watched remembers why reading ended, and ends it with its context.
type watched struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (w *watched) Read(p []byte) (int, error) {
	if w.ctx.Err() != nil {
		w.err = context.Cause(w.ctx)
		return 0, w.err
	}
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}
