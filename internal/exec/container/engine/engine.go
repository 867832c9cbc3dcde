// Package engine speaks to a container engine over its API: Docker, or Podman
// behind its compatible socket.
//
// Every method tells three things apart: what the engine could not do because
// it is not there or broken (a *tool.Fault), what does not exist
// ([ErrNotFound]), and what it refused.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/toolworker/toolworker/internal/tool"
)

const (
	// Off is the engine URL that turns container execution off.
	Off = "off"
	// LocalSocket is where an engine is looked for when nothing names one.
	LocalSocket = "/var/run/docker.sock"
)

// ErrNotFound is what an error about a missing container, image or volume wraps.
var ErrNotFound = errors.New("not found")

// Engine is a connection to one engine. It connects on demand: an engine that
// is down when the worker starts may be up later.
type Engine struct {
	client *client.Client
	host   string
}

// Locate chooses an engine: url when set, else DOCKER_HOST, else the local
// socket if it is there, else Off.
func Locate(url string) string {
	if url != "" {
		return url
	}
	if host := os.Getenv(client.EnvOverrideHost); host != "" {
		return host
	}
	if info, err := os.Stat(LocalSocket); err == nil && info.Mode().Type() == fs.ModeSocket {
		return "unix://" + LocalSocket
	}
	return Off
}

// Open returns the engine at url (unix://, tcp:// or http://). Certificates
// for TLS come from DOCKER_CERT_PATH and DOCKER_TLS_VERIFY, as for the docker
// command. The engine need not be reachable yet.
func Open(url string) (*Engine, error) {
	c, err := client.New(client.WithTLSClientConfigFromEnv(), client.WithHost(url), client.WithAPIVersionFromEnv())
	if err != nil {
		return nil, fmt.Errorf("container engine %q: %w", url, err)
	}
	return &Engine{client: c, host: url}, nil
}

// Host is the URL of the engine.
func (e *Engine) Host() string { return e.host }

// Close drops idle connections.
func (e *Engine) Close() error { return e.client.Close() }

// Version is what an engine says of itself.
type Version struct {
	Version string // of the engine
	API     string // that both sides speak
	Arch    string // as Go names it: amd64
	OS      string
	Memory  int64 // bytes
	CPUs    int
}

// Version asks the engine.
func (e *Engine) Version(ctx context.Context) (Version, error) {
	v, err := e.client.ServerVersion(ctx, client.ServerVersionOptions{})
	if err != nil {
		return Version{}, e.wrap(err, "ask engine for its version")
	}
	info, err := e.client.Info(ctx, client.InfoOptions{})
	if err != nil {
		return Version{}, e.wrap(err, "ask engine about its machine")
	}
	return Version{
		Version: v.Version, API: e.client.ClientVersion(), Arch: v.Arch, OS: v.Os,
		Memory: info.Info.MemTotal, CPUs: info.Info.NCPU,
	}, nil
}

// wrap says what was being done and sorts the error: a *tool.Fault unless the
// engine answered that something is missing, wrong or in conflict.
func (e *Engine) wrap(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	switch {
	case err == nil:
		return nil
	case cerrdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w: %s", what, ErrNotFound, reason(err))
	case cerrdefs.IsInvalidArgument(err), cerrdefs.IsConflict(err), cerrdefs.IsPermissionDenied(err), cerrdefs.IsUnauthorized(err):
		return fmt.Errorf("%s: %s", what, reason(err))
	case client.IsErrConnectionFailed(err):
		return &tool.Fault{Err: fmt.Errorf("%s: container engine at %s cannot be reached: %w", what, e.host, err)}
	}
	return &tool.Fault{Err: fmt.Errorf("%s: %w", what, err)}
}

// reason is the engine's own words, on one line.
func reason(err error) string {
	s := strings.TrimPrefix(err.Error(), "Error response from daemon: ")
	return strings.Join(strings.Fields(s), " ")
}

// bounded gives a clean-up the time it needs, also when ctx is over already.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), d)
}

// Local reports whether the engine runs on this machine, so that its paths
// are those of this process: it is reached through a socket of the file system.
func (e *Engine) Local() bool { return strings.HasPrefix(e.host, "unix://") }
