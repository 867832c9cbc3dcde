package exectest

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/policy"
	"github.com/toolworker/toolworker/internal/tool"
)

// Subject is a backend with a project to run tools in.
type Subject struct {
	Backend exec.Backend
	// Environment is where the backend runs tools.
	Environment tool.Environment
	// Root is the project's directory on the host, symlinks resolved, and
	// Inside the same directory as tools see it. It is writable for the suite.
	Root, Inside string
	// Project is the project of the tasks; only its id and resources matter.
	Project *tool.Project

	// What the backend promises beyond the contract of all.

	// Processes and CodeProcesses: a command, or code, may start further processes.
	Processes, CodeProcesses bool
	// ReadOnly: the kernel refuses writes to the project unless Task.Writes,
	// and Protects: to Task.Protect always.
	ReadOnly, Protects bool
	// PrivateTmp: /tmp is the execution's own.
	PrivateTmp bool
	// NoNetwork: nothing is reachable without Task.Network, not even loopback.
	NoNetwork bool
	// Memory: exceeding the memory limit is out_of_memory.
	Memory bool
	// Adds are names of variables that a tool may find beside the task's.
	Adds []string
}

// lockFile is what the processes of a tool hold a shared lock on.
const lockFile = "exectest.lock"

// newSubject makes the subject of one test.
func newSubject(t *testing.T, make func(t *testing.T) Subject) *Subject {
	t.Helper()
	s := make(t)
	if err := os.WriteFile(filepath.Join(s.Root, lockFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if s.Project == nil {
		s.Project = &tool.Project{ID: "exectest"}
	}
	return &s
}

// task is a task with a timeout that no honest run reaches.
func (s *Subject) task(limits tool.Limits) *exec.Task {
	limits.TimeoutSeconds = 30
	return &exec.Task{
		Request:    &tool.Request{Envelope: tool.Envelope{ID: "exectest"}, Project: s.Project.ID},
		Project:    s.Project,
		Resolution: tool.Resolution{Resolved: s.Environment, DecidedBy: tool.DecidedBySystem},
		Root:       s.Root,
		Input:      json.RawMessage("{}"),
		Env:        []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "TERM=dumb"},
		Limits:     limits,
	}
}

// command is a task that runs argv, with a token that marks its processes.
func (s *Subject) command(argv ...string) *exec.Task {
	t := s.task(policy.BuiltInCommand)
	t.Argv = argv
	t.Env = append(t.Env, tokenName+"=exectest-"+strings.ToLower(rand.Text()))
	return t
}

// python is a command that runs Python with arguments.
func (s *Subject) python(source string, args ...string) *exec.Task {
	return s.command(append([]string{"python3", "-I", "-c", source}, args...)...)
}

// code is a task of inline code. All have one environment: interpreters may
// be kept ready for it, and used again and again.
func (s *Subject) code(source string) *exec.Task {
	t := s.task(policy.BuiltInCode)
	t.Code, t.Name = source, "exectest"
	return t
}

// forms are the two ways in which Python gets to run: as a command and as code.
func (s *Subject) forms() map[string]func(source string) *exec.Task {
	return map[string]func(string) *exec.Task{
		"command": func(source string) *exec.Task { return s.python(source) },
		"code":    s.code,
	}
}

// forking are the forms in which Python may start processes.
func (s *Subject) forking(t *testing.T) map[string]func(source string) *exec.Task {
	t.Helper()
	forms := s.forms()
	if !s.Processes {
		delete(forms, "command")
	}
	if !s.CodeProcesses {
		delete(forms, "code")
	}
	if len(forms) == 0 {
		t.Skip("tools of this backend start no processes")
	}
	return forms
}

const tokenName = "EXECTEST_TOKEN"

// token is what marks the processes of a task, "" when nothing does.
func token(t *exec.Task) string {
	for _, entry := range t.Env {
		if value, ok := strings.CutPrefix(entry, tokenName+"="); ok {
			return value
		}
	}
	return ""
}

// ended is an Ending with its contents read.
type ended struct {
	*exec.Ending
	stdout, stderr, combined string
}

// run runs a task to its end, which is none of the infrastructure, and sees
// that nothing of it survives.
func (s *Subject) run(t *testing.T, task *exec.Task) *ended {
	t.Helper()
	ending, err := s.Backend.Run(t.Context(), task)
	s.noSurvivors(t, task)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return read(t, ending)
}

// runAmongOthers is run for several goroutines. It does not ask for the lock:
// a process that is being started elsewhere in this program has all of its
// descriptors for a moment, the lock's included.
func (s *Subject) runAmongOthers(t *testing.T, task *exec.Task) *ended {
	t.Helper()
	ending, err := s.Backend.Run(t.Context(), task)
	noProcesses(t, task)
	if err != nil {
		t.Errorf("run: %v", err)
		return &ended{Ending: &exec.Ending{}}
	}
	return read(t, ending)
}

func read(t *testing.T, e *exec.Ending) *ended {
	t.Helper()
	text := func(c tool.Content) string {
		if c == nil {
			return ""
		}
		defer c.Close()
		r, err := c.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		all, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(all)) != c.Size() {
			t.Errorf("content of %d bytes says it has %d", len(all), c.Size())
		}
		return string(all)
	}
	return &ended{e, text(e.Stdout), text(e.Stderr), text(e.Combined)}
}

// all is everything that the tool printed.
func (e *ended) all() string { return e.combined + e.stdout + e.stderr }

// wantExit fails the test unless the tool ended by itself with this code.
func (e *ended) wantExit(t *testing.T, code int) {
	t.Helper()
	if e.StartError != "" || e.TimedOut || e.Signal != "" || e.ExitCode != code {
		t.Fatalf("ended with %s, want exit code %d", e, code)
	}
}

// String says how it ended.
func (e *ended) String() string {
	text, _ := json.Marshal(map[string]any{
		"start_error": e.StartError, "exit_code": e.ExitCode, "signal": e.Signal, "timed_out": e.TimedOut,
		"hit": e.Hit, "hit_name": e.HitName, "truncated": e.Truncated, "value": string(e.Value), "value_error": e.ValueError,
		"output": shorten(e.all()), "duration": e.Duration.String(),
	})
	return string(text)
}

func shorten(s string) string {
	if len(s) > 200 {
		return s[:100] + " ... " + s[len(s)-100:]
	}
	return s
}
