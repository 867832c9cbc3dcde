package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/safefile"
	"github.com/toolworker/toolworker/internal/tool"
)

// DefaultRoot is where projects without a host_sandbox_path live, each in a
// directory named after its id.
const DefaultRoot = "/tmp/sandbox"

// root is the host-side sandbox root of a project, to be closed.
type root struct {
	*safefile.Root
	// given is its path as the operator wrote it and planners know it; Path
	// is the same directory with symlinks resolved.
	given string
}

// sandboxRoot opens the root of a project, and makes it when it is the
// default one. An error is a *tool.Error or a *tool.Fault.
func (p *pipeline) sandboxRoot(project *tool.Project) (root, error) {
	given := project.HostSandboxPath
	if given == "" {
		given = filepath.Join(p.DefaultRoot, project.ID)
		if err := makeDefaultRoot(p.DefaultRoot, project.ID); err != nil {
			return root{}, err
		}
	}
	if err := checkRoot("host_sandbox_path", given); err != nil {
		return root{}, tool.Errorf(tool.EnvironmentUnavailable, "project %q: %v", project.ID, err)
	}
	opened, err := safefile.OpenRoot(given)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return root{}, tool.Errorf(tool.EnvironmentUnavailable,
			"project %q: host_sandbox_path is no directory on this worker", project.ID)
	case err != nil:
		return root{}, &tool.Fault{Err: err}
	}
	return root{Root: opened, given: given}, nil
}

// makeDefaultRoot makes base/id, of which neither part may be a symlink or belong
// to somebody else: whoever owns /tmp/sandbox could swap what is in it.
func makeDefaultRoot(base, id string) error {
	refuse := func(what string) error {
		return tool.Errorf(tool.EnvironmentUnavailable,
			"project %q: the default sandbox root %s; give the project a host_sandbox_path", id, what)
	}
	if !tool.ValidName(id) {
		return refuse("cannot be named after its id")
	}
	fd, err := unix.Open(filepath.Dir(base), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &tool.Fault{Err: fmt.Errorf("open directory of sandbox roots: %w", err)}
	}
	for _, name := range []string{filepath.Base(base), id} {
		next, err := makeDirectory(fd, name)
		_ = unix.Close(fd)
		switch {
		case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
			return refuse("is a symlink or no directory")
		case errors.Is(err, errNotOurs):
			return refuse("belongs to another user")
		case err != nil:
			return &tool.Fault{Err: fmt.Errorf("make sandbox root: %w", err)}
		}
		fd = next
	}
	_ = unix.Close(fd)
	return nil
}

var errNotOurs = errors.New("belongs to another user")

// makeDirectory makes name in the directory at, or opens it when it is there.
// ENOTDIR or ELOOP: it is a symlink or no directory.
func makeDirectory(at int, name string) (int, error) {
	if err := unix.Mkdirat(at, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	fd, err := unix.Openat(at, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if err == nil && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		err = errNotOurs
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// relative returns what follows the root in an absolute path that is written
// below it, by either of its names.
func (r root) relative(p string) (string, bool) {
	rest, ok := cutRoot(p, r.given)
	if !ok {
		rest, ok = cutRoot(p, r.Path())
	}
	return rest, ok
}

// names reports whether an absolute path is meant to be one of the host's:
// it is below the root, or begins with it and then leaves it.
func (r root) names(p string) bool {
	if _, ok := r.relative(p); ok {
		return true
	}
	for _, name := range []string{r.given, r.Path()} {
		if rest, ok := strings.CutPrefix(p, name); ok && startsElement(rest) {
			return true
		}
	}
	return false
}

const (
	outside  = "leads out of the sandbox root"
	maxPath  = 4096 // PATH_MAX
	tooLong  = "is longer than 4096 bytes"
	noAccess = "cannot be resolved"
)

// locate says where p, relative to the root unless it is absolute, leads
// once symlinks are followed: relative to the root, "." for the root itself.
// refusal says why it leads nowhere that may be used, "" when it does. It is
// a courtesy to planners, who get a clear error: what holds a tool back at
// run time is the sandbox. The error is a *tool.Fault.
func (r root) locate(p string) (rel, refusal string, err error) {
	if len(p) > maxPath {
		return "", tooLong, nil
	}
	if path.IsAbs(p) {
		rest, ok := r.relative(p)
		if !ok {
			return "", outside, nil
		}
		p = strings.TrimLeft(rest, "/")
	}
	rel, err = r.Resolve(p)
	switch {
	case err == nil:
		return rel, "", nil
	case errors.Is(err, safefile.ErrEscape):
		return "", outside, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, unix.ELOOP):
		return "", noAccess, nil
	}
	return "", "", &tool.Fault{Err: err}
}
