package agent

import (
	"context"
	"fmt"
	"io"

	"github.com/toolworker/toolworker/internal/sandbox"
)

// open begins a run: its body may already be complete.
func (s *server) open(ctx context.Context, f frame) error {
	h, rest, err := parseRunHeader(f.payload)
	if err != nil {
		return err
	}
	c, err := s.register(ctx, f.id)
	if err != nil {
		return err
	}
	c.kind, c.header = f.kind, h
	return s.feed(c, rest)
}

// feed takes a piece of the body and starts the run when nothing is missing.
// Memory grows with what has arrived, never with what was announced.
func (s *server) feed(c *served, piece []byte) error {
	if c.started || len(c.body)+len(piece) > c.header.size() {
		return fmt.Errorf("%w: run %d has more body than announced", errProtocol, c.id)
	}
	c.body = append(c.body, piece...)
	if len(c.body) < c.header.size() {
		return nil
	}
	c.started = true
	doc, code, input := split(c.body, c.header)
	c.body = nil
	if c.kind == kindStage {
		return s.stage(c, doc, code)
	}
	var d specDoc
	if err := decode(doc, &d); err != nil {
		return err
	}
	spec := d.spec()
	spec.Input = input
	if d.Inline {
		spec.Code = code
	}
	s.wg.Go(func() {
		doc := s.run(c.ctx, c, spec)
		s.finish(c)
		s.exit(c.id, doc)
	})
	return nil
}

func split(body []byte, h runHeader) (spec, code, input []byte) {
	spec, body = body[:h.spec], body[h.spec:]
	code, input = body[:h.code:h.code], body[h.code:]
	return spec, code, input
}

func (s *server) run(ctx context.Context, c *served, spec *sandbox.Spec) *exitDoc {
	spec.Stdout = s.sink(c, kindStdout, spec.Limits.MaxOutputBytes)
	spec.Stderr = s.sink(c, kindStderr, spec.Limits.MaxOutputBytes)
	x, err := s.cfg.Runner.Run(ctx, spec)
	if err != nil {
		return &exitDoc{Fault: err.Error(), Code: -1}
	}
	return newExitDoc(x)
}

// exit answers a run. An answer that cannot be sent is no matter: then the
// stream is broken and the loop ends by itself.
func (s *server) exit(id uint32, d *exitDoc) {
	doc, err := encode(d)
	if err == nil && len(doc) > maxExit {
		err = fmt.Errorf("result of %d bytes, at most %d allowed", len(doc), maxExit)
	}
	if err != nil {
		doc, _ = encode(&exitDoc{Code: d.Code, Signal: d.Signal, TimedOut: d.TimedOut, ValueError: err.Error()})
	}
	_ = s.out.writePieces(kindExit, id, doc)
}

// stage answers a request to unpack files.
func (s *server) stage(c *served, doc, tar []byte) error {
	var d stageDoc
	if err := decode(doc, &d); err != nil {
		return err
	}
	s.wg.Go(func() {
		var end stagedDoc
		dir, err := s.cfg.Stage(d.Key, tar)
		end.Path = dir
		if err != nil {
			end = stagedDoc{Error: err.Error()}
		}
		s.finish(c)
		if doc, err := encode(end); err == nil {
			_ = s.out.writePieces(kindExit, c.id, doc)
		}
	})
	return nil
}

// read answers a request for a file.
func (s *server) read(ctx context.Context, f frame) error {
	var d readDoc
	if err := decode(f.payload, &d); err != nil {
		return err
	}
	c, err := s.register(ctx, f.id)
	if err != nil {
		return err
	}
	s.wg.Go(func() {
		var end fileDoc
		n, err := s.cfg.ReadFile(c.ctx, d.Root, d.Path, d.Max, s.sink(c, kindStdout, 0))
		end.Size = n
		if err != nil {
			end.Error = err.Error()
		}
		s.finish(c)
		doc, err := encode(end)
		if err == nil {
			_ = s.out.writePieces(kindExit, c.id, doc)
		}
	})
	return nil
}

// sink is where a run's output goes: paced by credit, and cut one byte after
// the cap, so that the worker can tell output that was cut from output that
// just fits.
type sink struct {
	out    *frameWriter
	credit *credit
	kind   kind
	id     uint32
	capped bool
	left   int64
}

func (s *server) sink(c *served, k kind, limit int64) io.Writer {
	return &sink{out: s.out, credit: c.credit, kind: k, id: c.id, capped: limit > 0, left: limit + 1}
}

// Write drops what is above the cap; it fails once the run is cancelled.
func (k *sink) Write(p []byte) (int, error) {
	total := len(p)
	if k.capped && int64(len(p)) > k.left {
		p = p[:k.left]
	}
	for len(p) > 0 {
		n, err := k.credit.take(min(len(p), maxPayload))
		if err != nil {
			return 0, err
		}
		if err := k.out.write(k.kind, k.id, p[:n]); err != nil {
			return 0, err
		}
		p, k.left = p[n:], k.left-int64(n)
	}
	return total, nil
}
