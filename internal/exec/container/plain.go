package container

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

var (
	//go:embed supervise.sh
	superviseScript string
	//go:embed reap.sh
	reapScript string
)

// plainSession runs tasks one by one, each as a command of its own under a
// supervisor in shell: where no agent can run. It ends a task's process tree
// all the same, but it does not confine the task within the container.
type plainSession struct {
	backend *Backend
	place   *place
	ended   chan struct{}
	once    sync.Once

	python plainPython
}

// openPlain opens a plain session in a container that has a shell.
func openPlain(ctx context.Context, b *Backend, p *place) (session, error) {
	s := &plainSession{backend: b, place: p, ended: make(chan struct{})}
	said := &tail{}
	out, err := s.call(ctx, []string{"/bin/sh", "-c", "echo $((6*7))"}, nil, said)
	if err != nil {
		return nil, err
	}
	if strings.TrimSpace(string(out)) != "42" {
		return nil, unusablef("nothing in container %s can supervise a tool: neither this worker's agent nor /bin/sh runs there%s", p.container.Name, said.quoted())
	}
	return s, nil
}

func (s *plainSession) mode() string          { return modeExec }
func (s *plainSession) done() <-chan struct{} { return s.ended }
func (s *plainSession) close()                { s.once.Do(func() { close(s.ended) }) }

// call runs a command of ours and returns its stdout.
func (s *plainSession) call(ctx context.Context, argv []string, stdin []byte, stderr io.Writer) ([]byte, error) {
	c, err := s.place.launcher.launch(ctx, argv, stderr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	go func() {
		_, _ = c.Write(stdin)
		_ = c.CloseWrite()
	}()
	out, err := io.ReadAll(io.LimitReader(c, 1<<20))
	if err != nil {
		return nil, &tool.Fault{Err: fmt.Errorf("run command in container: %w", err)}
	}
	return out, nil
}

func (s *plainSession) run(ctx context.Context, p *place, t *exec.Task) (*exec.Ending, error) {
	input := []byte(t.Input)
	argv := t.Argv
	if t.Definition != nil {
		if _, needed := exec.Beside(t.Argv, t.Definition.Dir, t.Definition.Dir); needed {
			return nil, unusablef("the files of the catalogue entry cannot be brought into container %s, where no agent runs", p.container.Name)
		}
	}
	if t.Argv == nil {
		var err error
		if argv, input, err = s.python.command(ctx, s, t); err != nil {
			return nil, err
		}
	}
	r := &plainRun{session: s, task: t, marker: rand.Text(), nonce: rand.Text()}
	out := newOutput(t, s.backend.config.SpoolDir)
	x, err := r.do(ctx, r.argv(argv, len(input)), append(r.head(), input...), out)
	if err != nil {
		out.discard()
		return nil, err
	}
	return out.ending(t, p, x, s.backend.log)
}

// plainRun is one task in a plain session.
type plainRun struct {
	session *plainSession
	task    *exec.Task
	marker  string // in the environment of everything that the task starts
	nonce   string // known to the supervisor only: what it says last begins with it
}

// head is what the supervisor reads before the input of the task: a secret
// and the environment, which is nobody's business in the process table.
func (r *plainRun) head() []byte {
	var b bytes.Buffer
	b.WriteString(r.nonce + "\n")
	for _, kv := range environ(nil, r.task) {
		name, value, _ := strings.Cut(kv, "=")
		if name == "PATH" && !setsPath(r.task) {
			continue
		}
		b.WriteString(name + "=" + escapes.Replace(value) + "\n")
	}
	b.WriteString("\n")
	return b.Bytes()
}

// escapes writes a value on one line, as printf's %b reads it.
var escapes = strings.NewReplacer("\\", "\\\\", "\n", "\\n")

// argv is the command line of the supervisor.
func (r *plainRun) argv(argv []string, input int) []string {
	t := r.task
	kind := "command"
	if t.Argv == nil {
		kind = "python"
	}
	limit := func(n int64, unit int64) string {
		if n <= 0 {
			return "unlimited"
		}
		return strconv.FormatInt(max(1, n/unit), 10)
	}
	seconds := t.Limits.TimeoutSeconds + plainGrace.Seconds()
	if t.Limits.TimeoutSeconds == 0 {
		seconds = math.MaxInt32 / 10
	}
	return append([]string{
		"/bin/sh", "-c", superviseScript, "toolworker-supervisor", r.marker, r.session.place.workspace, strconv.Itoa(input), kind,
		strconv.Itoa(int(seconds)), strconv.FormatInt(cmp.Or(t.Limits.PIDs, plainPIDs), 10),
		limit(int64(t.Limits.CPUSeconds), 1), limit(t.Limits.FileSizeBytes, 512), limit(t.Limits.OpenFiles, 1), limit(t.Limits.MemoryBytes, 1024),
	}, argv...)
}

// do runs the command to its end, or brings that about.
func (r *plainRun) do(ctx context.Context, argv []string, stdin []byte, out *output) (*sandbox.Exit, error) {
	t := r.task
	said := &trailer{to: io.Discard, nonce: r.nonce}
	var value bytes.Buffer
	if out.stderr != nil {
		said.to = out.stderr
	} else {
		said.to = &limited{w: &value, left: maxPlainValue}
	}
	c, err := r.session.place.launcher.launch(ctx, argv, said)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	go func() { _, _ = c.Write(stdin) }() // stays open: its end is the supervisor's signal that nobody waits any more
	started := time.Now()
	var timedOut, killed bool
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(out.stdout, c)
		ended <- err
	}()
	var late <-chan time.Time
	if d := t.Limits.Timeout(); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		late = timer.C
	}
	cancelled := ctx.Done()
	var grace <-chan time.Time
	for over := false; !over; {
		select {
		case err = <-ended:
			over = true
			continue
		case <-late:
			timedOut = true
		case <-cancelled:
			cancelled = nil
		case <-grace:
			_ = c.Close()
			continue
		}
		killed = true
		r.kill(ctx)
		timer := time.NewTimer(plainGrace)
		defer timer.Stop()
		grace = timer.C
	}
	x := &sandbox.Exit{Duration: time.Since(started), TimedOut: timedOut, Sandbox: tool.SandboxMetadata{
		Isolation: tool.IsolationNone, Mechanisms: []string{"rlimits"}, Missing: []string{"landlock", "seccomp"},
	}}
	code, why, ok := said.end()
	x.Usage.CPUMS = milliseconds(said.cpu)
	if said.tooMany {
		x.Hit, x.HitName = tool.TooManyProcesses, "pids"
	}
	switch {
	case ok && why != "":
		return &sandbox.Exit{Code: -1, StartError: why}, nil
	case ok && !killed:
		x.Code = code
		if code > 128 {
			x.Signal = unix.SignalName(unix.Signal(code - 128))
		}
	case killed:
		x.Code, x.Signal = 137, "SIGKILL"
	default:
		return nil, &tool.Fault{Err: errors.Join(errors.New("the supervisor in the container ended before the tool"), err)}
	}
	if out.stderr == nil {
		x.Value, x.ValueError = readPlainValue(&value)
	}
	return x, nil
}

// plainPIDs is how many processes a task may have that has no limit.
const plainPIDs = 4096

// plainGrace is how long a supervisor may take to end a tree.
const plainGrace = 5 * time.Second

// kill ends the tree through a command of its own: the supervisor may be busy
// with the task's input.
func (r *plainRun) kill(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), plainGrace)
	defer cancel()
	if _, err := r.session.call(ctx, []string{"/bin/sh", "-c", reapScript, "toolworker-reaper", r.marker}, nil, io.Discard); err != nil {
		r.session.backend.log.Warn("end a tool in a container without an agent", "container", r.session.place.container.ID, "error", err)
	}
}

// setsPath reports whether project or tool choose the PATH.
func setsPath(t *exec.Task) bool {
	_, ours := t.Project.Env["PATH"]
	if t.Definition == nil {
		return ours
	}
	_, own := t.Definition.Env["PATH"]
	for _, name := range t.Definition.EnvFrom {
		own = own || name == "PATH"
	}
	return ours || own
}
