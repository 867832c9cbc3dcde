package sandbox

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/python"
	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
	"github.com/toolworker/toolworker/internal/tool"
)

// ErrClosed is what Run gives once Close was called.
var ErrClosed = errors.New("sandbox is closed")

type runner struct {
	config      Config
	level       tool.Isolation
	interpreter *python.Interpreter
	spawner     *spawner
	identities  *identities
	owners      *owners
	cgroups     *cgroup.Manager
	filters     *filters
	landlock    int // ABI, 0 when there is none
	noProc      bool
	warmth      *warmth

	mu      sync.Mutex
	closed  bool
	running sync.WaitGroup
}

// New returns a Runner of the level that c asks for, or an error that says
// why the machine cannot give it, and what to do about that.
func New(c Config) (Runner, error) {
	c = c.WithDefaults()
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("sandbox configuration: %w", err)
	}
	ctx := context.Background()
	r, err := newRunner(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := r.chooseLevel(ctx); err != nil {
		_ = r.Close()
		return nil, err
	}
	if r.limitsNeedProc() {
		r.config.Warm = WarmOff
		c.Log.Warn("no limits without /proc and control groups: every execution starts cold")
	}
	r.warmth = newWarmth(r)
	return r, nil
}

// newRunner gives a runner whose level is not chosen yet.
func newRunner(ctx context.Context, c Config) (*runner, error) {
	interpreter, err := FindInterpreter(ctx, c.Interpreter)
	if err != nil {
		return nil, err
	}
	arch, err := seccomp.Native()
	if err != nil {
		return nil, err
	}
	r := &runner{
		config: c, interpreter: interpreter, spawner: newSpawner(), cgroups: cgroup.Open(),
		identities: newIdentities(), filters: &filters{arch: arch}, landlock: landlock.ABI(),
	}
	r.owners = &owners{spawner: r.spawner, executable: c.Executable}
	return r, nil
}

// Run implements Runner.
func (r *runner) Run(ctx context.Context, s *Spec) (*Exit, error) {
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	if !r.level.AtLeast(s.Least) {
		return &Exit{Code: -1, StartError: fmt.Sprintf("isolation %q is demanded, this worker has %q", s.Least, r.level)}, nil
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, ErrClosed
	}
	r.running.Add(1)
	r.mu.Unlock()
	defer r.running.Done()
	if ctx.Err() != nil {
		return &Exit{Code: 137, Signal: "SIGKILL"}, nil
	}
	return r.tracked(s, func() (*Exit, error) {
		return r.guarded(s, func(s *Spec) (*Exit, error) {
			if s.Code != nil && r.warmth != nil {
				return r.warmth.run(ctx, s)
			}
			return r.runCold(ctx, s, r.level)
		})
	})
}

// Close implements Runner. It waits for what is running.
func (r *runner) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.running.Wait()
	r.warmth.close()
	r.owners.close()
	r.spawner.close()
	return r.cgroups.Close()
}

func (s *Spec) validate() error {
	if (len(s.Argv) > 0) == (s.Code != nil) {
		return errors.New("expected exactly one of a command and code")
	}
	if !filepath.IsAbs(s.Root) || filepath.Clean(s.Root) != s.Root || s.Root == "/" {
		return fmt.Errorf("root %q: expected a clean absolute path below /", s.Root)
	}
	for _, p := range s.Protect {
		if !filepath.IsLocal(p) || filepath.Clean(p) == "." {
			return fmt.Errorf("protected path %q: expected one below the root", p)
		}
	}
	for _, p := range s.ReadOnly {
		if !filepath.IsAbs(p) {
			return fmt.Errorf("read-only directory %q: expected an absolute path", p)
		}
	}
	return nil
}
