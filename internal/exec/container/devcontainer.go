package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/tool"
)

// devcontainers reaches containers through the devcontainer CLI.
type devcontainers struct {
	config      Config
	inspections *inspections
	cli         string // absolute path
	cliErr      error  // why there is none

	mu   sync.Mutex
	ups  map[string]*up
	dir  string // private copies of configurations that were checked
	work sync.WaitGroup
}

func newDevcontainers(c Config, i *inspections) *devcontainers {
	d := &devcontainers{config: c, inspections: i, ups: make(map[string]*up)}
	d.cli, d.cliErr = findCLI(c.Devcontainer)
	return d
}

// findCLI resolves the CLI once: a PATH that changes later changes nothing.
func findCLI(name string) (string, error) {
	path, err := osexec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", unusablef("the devcontainer CLI %q was not found when the worker started: install @devcontainers/cli, or say where it is with --devcontainer", name)
	}
	return path, nil
}

// instance is a devcontainer that somebody brought up.
func (d *devcontainers) instance(ctx context.Context, _ *exec.Task, r tool.Resource) (*place, error) {
	if d.cliErr != nil {
		return nil, d.cliErr
	}
	if r.ContainerID == "" {
		return nil, tool.Errorf(tool.EnvironmentUnavailable, "resource %q names no container_id", r.Type)
	}
	c, err := d.inspections.usable(ctx, r.ContainerID)
	if err != nil {
		return nil, err
	}
	return &place{container: c, launcher: devLauncher{d, []string{"--container-id", c.ID}}}, nil
}

// close ends what still runs and removes the copies.
func (d *devcontainers) close() error {
	d.work.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dir == "" {
		return nil
	}
	return os.RemoveAll(d.dir)
}

// command is a call of the CLI. It gets PATH, LANG and TERM of the worker, the
// engine to use, and nothing else.
func (d *devcontainers) command(ctx context.Context, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(ctx, d.cli, args...)
	cmd.Env = []string{}
	for _, name := range []string{"PATH", "LANG", "TERM"} {
		if value, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	if d.config.Engine != "unix://"+engine.LocalSocket {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+d.config.Engine)
	}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return killGroup(cmd.Process) }
	cmd.WaitDelay = 2 * time.Second
	return cmd
}

func killGroup(p *os.Process) error {
	if err := unix.Kill(-p.Pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// devLauncher starts commands by devcontainer exec.
type devLauncher struct {
	d    *devcontainers
	args []string // that choose the container
}

func (l devLauncher) key() string { return strings.Join(l.args, " ") }

func (l devLauncher) launch(_ context.Context, argv []string, stderr io.Writer) (conn, error) {
	// The command outlives the context of whoever needed it first.
	ctx, cancel := context.WithCancel(context.Background())
	args := append([]string{"exec", "--default-user-env-probe", "none"}, l.args...)
	cmd := l.d.command(ctx, append(args, argv...)...)
	cmd.Stderr = stderr
	in, err := cmd.StdinPipe()
	if err == nil {
		var out io.ReadCloser
		if out, err = cmd.StdoutPipe(); err == nil {
			if err = cmd.Start(); err == nil {
				return &commandConn{cmd: cmd, in: in, out: out, cancel: cancel, work: &l.d.work}, nil
			}
		}
	}
	cancel()
	return nil, &tool.Fault{Err: fmt.Errorf("start devcontainer CLI: %w", err)}
}

// commandConn is a command of this machine that stands for one in a container.
type commandConn struct {
	cmd    *osexec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	cancel context.CancelFunc
	work   *sync.WaitGroup
	waited sync.Once
	closed sync.Once
}

// Read gives EOF only when all of stderr has arrived as well.
func (c *commandConn) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	if err != nil {
		c.wait()
	}
	return n, err
}

func (c *commandConn) wait() { c.waited.Do(func() { _ = c.cmd.Wait(); c.cancel() }) }

func (c *commandConn) Write(p []byte) (int, error) { return c.in.Write(p) }
func (c *commandConn) CloseWrite() error           { return c.in.Close() }

// Close ends the command's stdin, which ends an agent, and soon afterwards
// the command itself.
func (c *commandConn) Close() error {
	c.closed.Do(func() {
		_ = c.in.Close()
		c.work.Go(func() {
			timer := time.AfterFunc(closeWait, c.cancel)
			defer timer.Stop()
			_, _ = io.Copy(io.Discard, c.out)
			c.wait()
		})
	})
	return nil
}

// closeWait is how long a command may take to end after its stdin has.
const closeWait = 3 * time.Second

// upTimeout bounds devcontainer up, which may have to build an image.
const upTimeout = 15 * time.Minute
