package container

import (
	"errors"
	"log/slog"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/capture"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// modes of metadata.container.
const (
	modeAgent = "agent"
	modeExec  = "exec"
)

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// notStarted is the ending of a task that no process was started for.
func notStarted(t *exec.Task, p *place, reason string) *exec.Ending {
	m := &tool.ContainerMetadata{ExitCode: -1}
	if p != nil {
		m.ContainerID, m.Image, m.WorkspaceFolder, m.Mode = p.container.ID, p.image, p.workspace, p.mode
	} else if len(t.Project.Resources) > 0 {
		r := t.Project.Resources[0]
		m.ContainerID, m.Image, m.WorkspaceFolder = r.ContainerID, r.Image, r.WorkspaceFolder
	}
	return &exec.Ending{StartError: reason, ExitCode: -1, Container: m}
}

// output takes what a task writes.
type output struct {
	stdout, stderr *capture.Writer // stdout takes both for code
}

func newOutput(t *exec.Task, dir string) *output {
	open := func(stream string) *capture.Writer {
		o := capture.Options{Limit: t.Limits.MaxOutputBytes, Dir: dir}
		if t.Live != nil {
			o.Live = func(offset int64, p []byte) { t.Live(stream, offset, p) }
		}
		return capture.NewWriter(o)
	}
	o := &output{stdout: open("stdout")}
	if t.Code == "" {
		o.stderr = open("stderr")
	}
	return o
}

// attach makes the output the sinks of a spec.
func (o *output) attach(s *sandbox.Spec) {
	s.Stdout = o.stdout
	if o.stderr != nil {
		s.Stderr = o.stderr
	}
}

// discard frees what was written.
func (o *output) discard() {
	for _, w := range []*capture.Writer{o.stdout, o.stderr} {
		if w == nil {
			continue
		}
		if c, err := w.Finish(); err == nil {
			_ = c.Close()
		}
	}
}

// ending is how a process ended, with what it wrote.
func (o *output) ending(t *exec.Task, p *place, x *sandbox.Exit, log *slog.Logger) (*exec.Ending, error) {
	if x.StartError != "" {
		o.discard()
		return notStarted(t, p, x.StartError), nil
	}
	e := &exec.Ending{
		ExitCode: x.Code, Signal: x.Signal, TimedOut: x.TimedOut, Hit: x.Hit, HitName: x.HitName,
		Value: x.Value, ValueError: x.ValueError, Duration: x.Duration,
		Changes: x.Changes, ChangesTruncated: x.ChangesTruncated, Usage: x.Usage, Sandbox: &x.Sandbox,
		Container: &tool.ContainerMetadata{
			ContainerID: p.container.ID, Image: p.image, WorkspaceFolder: p.workspace, Mode: p.mode,
			ExecTimeMS: milliseconds(x.Duration), ExitCode: x.Code, TimedOut: x.TimedOut,
		},
	}
	first, err := o.stdout.Finish()
	if err != nil {
		o.discard()
		return nil, err
	}
	e.Truncated = first.Truncated
	if o.stderr == nil {
		e.Combined = first
	} else {
		second, err := o.stderr.Finish()
		if err != nil {
			return nil, errors.Join(err, first.Close())
		}
		e.Stdout, e.Stderr = first, second
		e.Truncated = e.Truncated || second.Truncated
	}
	if e.Truncated {
		log.Warn("output of a tool in a container was cut", "project", t.Project.ID, "request", t.Request.ID,
			"container", p.container.ID, "limit_bytes", t.Limits.MaxOutputBytes)
	}
	return e, nil
}
