package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
	"github.com/toolworker/toolworker/internal/sandbox/python"
	"github.com/toolworker/toolworker/internal/sandbox/warm"
	"github.com/toolworker/toolworker/internal/tool"
)

// spareSlot is an interpreter that was started ahead of one run, confined as
// a cold start is.
type spareSlot struct {
	runner      *runner
	confinement *confinement
	process     *coldRun
	streams     *streams
	request     *os.File
	output      *os.File
	value       *os.File
	used        bool
}

// spareFiles are the descriptors of a cold start, and the one that says that
// the spare is ready.
const spareFiles = warm.SpareReadyFD + 1

// startSpare starts an interpreter for one run like s.
func (w *warmth) startSpare(ctx context.Context, s *Spec) (ready, error) {
	program, err := w.program()
	if err != nil {
		return nil, err
	}
	slot := &spareSlot{runner: w.runner, streams: &streams{}}
	announced, err := slot.open()
	if err == nil {
		spec := *s
		spec.Limits = tool.Limits{MemoryBytes: s.Limits.MemoryBytes, PIDs: s.Limits.PIDs, CPUs: s.Limits.CPUs}
		slot.confinement, err = w.runner.confine(&spec, w.runner.level, spareFiles)
	}
	if err != nil {
		slot.streams.closeTool()
		slot.streams.abandon()
		return nil, err
	}
	slot.confinement.setup.Argv = program.Argv
	if err := slot.start(ctx, program, announced); err != nil {
		return nil, errors.Join(err, slot.Close())
	}
	return slot, nil
}

// open opens the spare's pipes.
func (s *spareSlot) open() (announced *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open null device: %w", err)
	}
	st := s.streams
	st.tool = append(st.tool, null)
	if s.output, err = st.output(); err != nil {
		return nil, err
	}
	st.tool = append(st.tool, st.tool[1])
	r, request, err := pipe(true)
	if err != nil {
		return nil, err
	}
	s.request = request
	st.tool, st.ends = append(st.tool, r), append(st.ends, request)
	if s.value, err = st.output(); err != nil {
		return nil, err
	}
	return st.output()
}

// start starts the process and waits until it is ready.
func (s *spareSlot) start(ctx context.Context, program *python.Program, announced *os.File) error {
	c := s.confinement
	held, err := s.runner.hold(c, s.streams.tool)
	s.streams.closeTool()
	if err != nil {
		return err
	}
	s.process = &coldRun{sup: held.sup, group: c.group, ready: true}
	stop := context.AfterFunc(ctx, held.Kill)
	defer stop()
	select {
	case rep, ok := <-held.sup.reports:
		switch {
		case !ok:
			return errors.Join(errors.New("sandbox supervisor ended"), context.Cause(ctx))
		case rep.Kind == frame.Failed:
			_, err := notStarted(&Spec{}, rep)
			return err
		}
		s.process.noProc = rep.NoProc
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if _, err := s.request.Write(program.Prologue); err != nil {
		return fmt.Errorf("send bootstrap to a spare: %w", err)
	}
	var b [1]byte
	_, _ = announced.Read(b[:]) // its end is the announcement, or the spare's
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if !s.alive() {
		return errors.New("spare interpreter ended before its run")
	}
	s.process.idleCPU = c.group.CPU()
	return nil
}

// alive reports whether the spare's supervisor has not said anything more.
func (s *spareSlot) alive() bool {
	select {
	case <-s.process.sup.reports:
		return false
	default:
		return true
	}
}

// run implements ready.
func (s *spareSlot) run(ctx context.Context, spec *Spec) (*Exit, warm.Outcome, error) {
	request, err := s.runner.request(spec)
	if err != nil {
		return nil, warm.Fine, err
	}
	if !s.alive() {
		return nil, warm.Spent, fmt.Errorf("%w: the spare interpreter has ended", warm.ErrNotStarted)
	}
	s.used = true
	s.streams.copy(spec.Stdout, s.output)
	s.streams.read(s.value)
	s.streams.work.Go(func() {
		_, _ = s.request.Write(request)
		_ = s.request.Close()
	})
	s.process.spec = spec
	s.process.watch(ctx)
	exit, err := s.process.finish(s.confinement, s.streams)
	return exit, warm.Spent, err
}

// Close implements warm.Slot.
func (s *spareSlot) Close() error {
	var err error
	if !s.used {
		if s.process != nil {
			s.process.kill()
			_, err = s.process.sup.end()
			if !s.process.sup.init {
				s.process.group.Kill()
			}
		}
		s.streams.closeTool()
		s.streams.abandon()
	}
	s.confinement.started()
	s.confinement.release()
	return err
}
