package host

import (
	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/sandbox"
)

// streams are where a task's output goes: commands have two, code has one.
type streams struct {
	code   bool
	stdout *capture.Writer // combined, for code
	stderr *capture.Writer
}

func newStreams(t *exec.Task, dir string) *streams {
	writer := func(stream string) *capture.Writer {
		o := capture.Options{Limit: t.Limits.MaxOutputBytes, Dir: dir}
		if t.Live != nil {
			o.Live = func(offset int64, p []byte) { t.Live(stream, offset, p) }
		}
		return capture.NewWriter(o)
	}
	s := &streams{code: len(t.Argv) == 0, stdout: writer("stdout")}
	if !s.code {
		s.stderr = writer("stderr")
	}
	return s
}

func (s *streams) attach(spec *sandbox.Spec) {
	spec.Stdout = s.stdout
	if !s.code {
		spec.Stderr = s.stderr
	}
}

// finish puts what was captured into the ending.
func (s *streams) finish(e *exec.Ending) error {
	stdout, err := s.stdout.Finish()
	if err != nil {
		s.discard()
		return err
	}
	e.Truncated = stdout.Truncated
	if s.code {
		e.Combined = stdout
		return nil
	}
	stderr, err := s.stderr.Finish()
	if err != nil {
		s.discard()
		return err
	}
	e.Stdout, e.Stderr = stdout, stderr
	e.Truncated = e.Truncated || stderr.Truncated
	return nil
}

// discard frees what was captured.
func (s *streams) discard() {
	for _, w := range []*capture.Writer{s.stdout, s.stderr} {
		if w == nil {
			continue
		}
		if c, err := w.Finish(); err == nil {
			_ = c.Close()
		}
	}
}
