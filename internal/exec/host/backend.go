// Package host runs inline Python and commands of the catalogue on the
// worker's own machine, confined by the sandbox.
package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

// Config is what the backend needs. Runner is required.
type Config struct {
	Runner sandbox.Runner
	// Expose are absolute directories that every tool sees, read-only.
	Expose []string
	// SpoolDir takes large outputs; "" is the directory for temporary files.
	SpoolDir string
}

// Backend is the exec.Backend of the host.
type Backend struct {
	runner   sandbox.Runner
	expose   []string
	spoolDir string
}

var _ exec.Backend = (*Backend)(nil)

// New checks the exposed directories and returns the backend. The Runner
// stays the caller's to close.
func New(c Config) (*Backend, error) {
	if c.Runner == nil {
		return nil, errors.New("host backend: expected a sandbox runner")
	}
	b := &Backend{runner: c.Runner, spoolDir: c.SpoolDir}
	for _, dir := range c.Expose {
		real, err := directory(dir)
		if err != nil {
			return nil, fmt.Errorf("exposed directory %q: %w", dir, err)
		}
		b.expose = append(b.expose, real)
	}
	return b, nil
}

// directory resolves the symlinks of an absolute path to a directory.
func directory(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", errors.New("expected an absolute path")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", errors.New("expected a directory")
	case real == "/":
		return "", errors.New("would expose the whole machine")
	}
	return real, nil
}

// Run implements exec.Backend.
func (b *Backend) Run(ctx context.Context, t *exec.Task) (*exec.Ending, error) {
	spec, why := b.spec(t)
	if why != "" {
		return &exec.Ending{StartError: why, ExitCode: -1}, nil
	}
	streams := newStreams(t, b.spoolDir)
	streams.attach(spec)
	exit, err := b.runner.Run(ctx, spec)
	if err != nil {
		streams.discard()
		return nil, &tool.Fault{Err: fmt.Errorf("run in sandbox: %w", err)}
	}
	ending := &exec.Ending{
		StartError:       exit.StartError,
		ExitCode:         exit.Code,
		Signal:           exit.Signal,
		TimedOut:         exit.TimedOut,
		Hit:              exit.Hit,
		HitName:          exit.HitName,
		Value:            exit.Value,
		ValueError:       exit.ValueError,
		Duration:         exit.Duration,
		Changes:          exit.Changes,
		ChangesTruncated: exit.ChangesTruncated,
		Usage:            exit.Usage,
		Sandbox:          &exit.Sandbox,
	}
	if err := streams.finish(ending); err != nil {
		return nil, err
	}
	return ending, nil
}

// spec is the task in the sandbox's words, or why it cannot be started.
func (b *Backend) spec(t *exec.Task) (spec *sandbox.Spec, why string) {
	spec = &sandbox.Spec{
		Project:  t.Project.ID,
		Name:     t.Name,
		Input:    t.Input,
		Env:      t.Env,
		Root:     t.Root,
		Writable: t.Writes,
		Protect:  t.Protect,
		ReadOnly: b.expose,
		Network:  t.Network,
		Least:    t.Isolation,
		Limits:   t.Limits,
	}
	beside := ""
	if t.Definition != nil && t.Definition.Dir != "" {
		var err error
		if beside, err = directory(t.Definition.Dir); err != nil {
			return nil, "the directory of the catalogue entry is not there any more"
		}
		spec.ReadOnly = append(spec.ReadOnly[:len(spec.ReadOnly):len(spec.ReadOnly)], beside)
	}
	if len(t.Argv) > 0 {
		spec.Argv = argv(t.Argv, beside)
	} else {
		spec.Code = []byte(t.Code)
	}
	return spec, ""
}
