package exec

import (
	"cmp"
	"context"
	"errors"
	"os"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/internal/trace"
)

// Config is what the pipeline is made of. Catalogue and Host are required.
type Config struct {
	Catalogue Catalogue
	// Host runs on the worker's machine, at HostIsolation. Container runs in
	// the projects' containers; nil when container execution is turned off.
	Host          Backend
	HostIsolation tool.Isolation
	Container     Backend
	// Maximum are the worker's own limits, above every project's.
	Maximum tool.Limits
	// DefaultRoot holds the projects without a host_sandbox_path.
	DefaultRoot string
	// SpoolDir takes large outputs; "" is the directory for temporary files.
	SpoolDir string
	// LookUpEnv reads the worker's own environment.
	LookUpEnv func(name string) (string, bool)
	// Spans starts the spans of the stages; the zero value starts none.
	Spans trace.Spans
	// ContainerRuntime is the engine's name for spans: docker, podman.
	ContainerRuntime string
	// Live is told the environment of requests that want live events, and
	// returns a receiver of their output as Task.Live describes it. nil when
	// there are none.
	Live func(ctx context.Context, env tool.Environment) func(stream string, offset int64, p []byte)
}

// Catalogue is where tools and projects come from.
type Catalogue interface {
	// Snapshot is the catalogue of this moment.
	Snapshot() *catalog.Snapshot
	// LookUp asks for a name that the snapshot does not have once more where
	// the catalogue is kept; the snapshot that it returns has it, if any does.
	LookUp(ctx context.Context, kind catalog.Kind, name string) (*catalog.Snapshot, error)
}

// WithDefaults returns c with every unset member that has a default set.
func (c Config) WithDefaults() Config {
	c.DefaultRoot = cmp.Or(c.DefaultRoot, DefaultRoot)
	if c.LookUpEnv == nil {
		c.LookUpEnv = os.LookupEnv
	}
	return c
}

// New returns the pipeline from request to result. Decorators go around it.
func New(c Config) (Executor, error) {
	c = c.WithDefaults()
	switch {
	case c.Catalogue == nil:
		return nil, errors.New("pipeline: expected a catalogue")
	case c.Host == nil:
		return nil, errors.New("pipeline: expected a host backend")
	}
	if err := checkRoot("default root", c.DefaultRoot); err != nil {
		return nil, err
	}
	return &pipeline{c}, nil
}

type pipeline struct{ Config }

// Execute implements Executor. The first error wins; what was found out
// before it stays in the result.
func (p *pipeline) Execute(ctx context.Context, r *tool.Request) *tool.Result {
	x := &execution{pipeline: p, request: r, result: newResult(r)}
	defer x.close()
	settle(x.result, x.run(ctx))
	return x.result
}

func newResult(r *tool.Request) *tool.Result {
	return &tool.Result{RequestID: r.ID, Project: r.Project, PlanID: r.Plan.ID, Tool: r.Name()}
}
