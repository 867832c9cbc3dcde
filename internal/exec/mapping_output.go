package exec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/tool"
)

// mapOut gives the container paths in output and value their host names.
// stdout and stderr stay what the tool wrote.
func (x *execution) mapOut() error {
	mapper, err := NewPathMapper(x.root.given, x.workspace())
	if err != nil {
		return fmt.Errorf("map output: %w", err)
	}
	for _, payload := range []**tool.Payload{&x.result.Output, &x.result.Value} {
		if *payload == nil {
			continue
		}
		mapped, err := x.mapPayload(mapper, *payload)
		if err != nil {
			return &tool.Fault{Err: fmt.Errorf("map output: %w", err)}
		}
		if mapped != *payload && *payload != x.result.Stdout {
			defer (*payload).Content.Close()
		}
		*payload = mapped
	}
	return nil
}

// mapPayload returns p itself when there is nothing to map. The content is
// read once to find out and only then written anew.
func (x *execution) mapPayload(m *PathMapper, p *tool.Payload) (*tool.Payload, error) {
	pass := func(w io.Writer) (changed bool, err error) {
		r, err := p.Content.Open()
		if err != nil {
			return false, err
		}
		defer r.Close()
		if p.Document {
			return rerootStream(w, r, m.container, m.host, true)
		}
		return rerootLines(w, r, m.container, m.host)
	}
	if changed, err := pass(io.Discard); err != nil || !changed {
		return p, err
	}
	spool := capture.NewSpool(x.SpoolDir, 0)
	if _, err := pass(spool); err != nil {
		return nil, errors.Join(err, spool.Close())
	}
	return &tool.Payload{Document: p.Document, Content: spool}, nil
}

// rerootLines maps every line of a text that is a path below from: the text
// itself when it is one path, each when it is a list of them. It reports
// whether there was any.
func rerootLines(w io.Writer, r io.Reader, from, to string) (changed bool, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for inLine := false; ; {
		line, err := lines.ReadSlice('\n')
		whole := !inLine && !errors.Is(err, bufio.ErrBufferFull) // longer ones are no paths
		inLine = errors.Is(err, bufio.ErrBufferFull)
		if whole {
			text := bytes.TrimRight(line, "\r\n")
			if mapped, ok, err := reroot(string(text), from, to); ok && err == nil {
				line, changed = append([]byte(mapped), line[len(text):]...), true
			}
		}
		if _, err := w.Write(line); err != nil {
			return changed, err
		}
		switch {
		case errors.Is(err, io.EOF):
			return changed, nil
		case err != nil && !inLine:
			return changed, fmt.Errorf("read output: %w", err)
		}
	}
}
