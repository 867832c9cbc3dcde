package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	executor "github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container"
	"github.com/toolworker/toolworker/internal/exec/container/containertest"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/tool"
)

// entrance is one way to run a command in a container.
type entrance struct {
	name string
	runs int // measured at scale 1, for each concurrency
	run  func(ctx context.Context, argv []string) error
	code func(ctx context.Context) error // inline Python, nil where it is a command
}

var (
	noop   = []string{"/bin/true"}
	python = []string{"/usr/bin/python3", "-I", "-S", "-c", answer}
)

// containers runs a command that does nothing, and a line of Python, in one
// container by every way into it.
func containers(ctx context.Context, b *bench) (err error) {
	defer func() { err = errors.Join(err, containertest.CleanUp()) }()
	root, err := os.MkdirTemp("", "toolworker-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return err
	}
	image, err := containertest.PythonImage()
	if err != nil {
		return err
	}
	program, err := containertest.Build()
	if err != nil {
		return err
	}
	id, stop, err := containertest.StartContainer(image, root, nil)
	if err != nil {
		return err
	}
	defer stop()
	session, err := container.New(container.Config{Worker: containertest.Worker("bench"), Executable: program, Slots: 64})
	if err != nil {
		return err
	}
	defer session.Close()
	api, err := engine.Open(containertest.URL())
	if err != nil {
		return err
	}
	defer api.Close()

	ways := []entrance{
		{"Engine API exec", 200, overAPI(api, id), nil},
		{"our session", 5_000, inSession(session, root, id), codeInSession(session, root, id)},
	}
	for _, cli := range []struct {
		name string
		runs int
		argv []string
	}{
		{"docker exec", 100, []string{"docker", "exec", "-i", id}},
		{"devcontainer exec", 20, []string{"devcontainer", "exec", "--default-user-env-probe", "none", "--container-id", id}},
	} {
		if _, err := exec.LookPath(cli.argv[0]); err != nil {
			fmt.Fprintf(b.out, "%s is not there: left out\n", cli.argv[0])
			continue
		}
		ways = append([]entrance{{cli.name, cli.runs, byCommand(cli.argv), nil}}, ways...)
	}
	return compare(ctx, b, ways)
}

// compare prints a table, the last way beside all others.
func compare(ctx context.Context, b *bench, ways []entrance) error {
	fmt.Fprintf(b.out, "%-8s %3s %-18s %10s %10s %10s\n", "", "c", "", "median ms", "p95 ms", "per second")
	for _, what := range []string{"no-op", "python"} {
		for _, slots := range []int{1, 8} {
			var seen []measured
			for _, w := range ways {
				run := func(ctx context.Context) error { return w.run(ctx, noop) }
				if what == "python" {
					run = func(ctx context.Context) error { return w.run(ctx, python) }
					if w.code != nil {
						run = w.code
					}
				}
				m, err := repeat(ctx, run, b.n(w.runs), slots)
				if err != nil {
					return fmt.Errorf("%s: %w", w.name, err)
				}
				fmt.Fprintf(b.out, "%-8s %3d %-18s %10.2f %10.2f %10.0f\n", what, slots, w.name, ms(m.median), ms(m.p95), m.rate)
				seen = append(seen, m)
			}
			last := seen[len(seen)-1]
			for i, m := range seen[:len(seen)-1] {
				fmt.Fprintf(b.out, "%-8s %3d %.0f times as fast as %s, %.0f times as many per second\n", what, slots,
					float64(m.median)/float64(last.median), ways[i].name, last.rate/m.rate)
			}
		}
	}
	return nil
}

type measured struct {
	median, p95 time.Duration
	rate        float64 // per second
}

// repeat runs something n times, slots at a time, after a few to warm up.
func repeat(ctx context.Context, run func(context.Context) error, n, slots int) (measured, error) {
	n = max(n, slots)
	taken := make([]time.Duration, n)
	var next atomic.Int64
	next.Store(int64(-slots)) // the first of every slot is not counted
	var begin atomic.Int64
	failed := make(chan error, slots)
	var wg sync.WaitGroup
	for range slots {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				now := time.Now()
				begin.CompareAndSwap(0, now.UnixNano())
				if err := run(ctx); err != nil {
					failed <- err
					return
				}
				if i >= 0 {
					taken[i] = time.Since(now)
				}
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(time.Unix(0, begin.Load()))
	close(failed)
	if err := errors.Join(<-failed, ctx.Err()); err != nil {
		return measured{}, err
	}
	return measured{quantile(taken, 0.5), quantile(taken, 0.95), float64(n+slots) / elapsed.Seconds()}, nil
}

func byCommand(prefix []string) func(context.Context, []string) error {
	return func(ctx context.Context, argv []string) error {
		cmd := exec.CommandContext(ctx, prefix[0], append(prefix[1:len(prefix):len(prefix)], argv...)...)
		cmd.Stdin = strings.NewReader("{}")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}
}

func overAPI(e *engine.Engine, id string) func(context.Context, []string) error {
	return func(ctx context.Context, argv []string) error {
		s, err := e.Start(ctx, id, engine.Exec{Argv: argv}, io.Discard)
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.CloseWrite(); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, s); err != nil {
			return err
		}
		for ctx.Err() == nil { // the engine notices the end a little later
			if code, err := s.ExitCode(ctx); err == nil {
				if code != 0 {
					return fmt.Errorf("exit code %d", code)
				}
				return nil
			}
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	}
}

func inSession(b *container.Backend, root, id string) func(context.Context, []string) error {
	return func(ctx context.Context, argv []string) error {
		t := task(root, id)
		t.Argv = argv
		return runTask(ctx, b, t)
	}
}

func codeInSession(b *container.Backend, root, id string) func(context.Context) error {
	return func(ctx context.Context) error {
		t := task(root, id)
		t.Code, t.Name = answer, "bench"
		return runTask(ctx, b, t)
	}
}

func task(root, id string) *executor.Task {
	return &executor.Task{
		Request: &tool.Request{Envelope: tool.Envelope{ID: "bench"}, Project: "bench"},
		Project: &tool.Project{ID: "bench", Resources: []tool.Resource{
			{Type: tool.ContainerInstance, ContainerID: id, WorkspaceFolder: tool.DefaultWorkspaceFolder},
		}},
		Resolution: tool.Resolution{Resolved: tool.Container, DecidedBy: tool.DecidedByTool},
		Root:       root, Input: json.RawMessage("{}"), Env: []string{"LANG=C.UTF-8", "TERM=dumb"},
		Limits: tool.Limits{TimeoutSeconds: 30, MaxOutputBytes: 1 << 20, MemoryBytes: 512 << 20, PIDs: 128, FileSizeBytes: 1 << 30, OpenFiles: 256},
	}
}

func runTask(ctx context.Context, b *container.Backend, t *executor.Task) error {
	e, err := b.Run(ctx, t)
	if err != nil {
		return err
	}
	for _, c := range []tool.Content{e.Stdout, e.Stderr, e.Combined} {
		if c != nil {
			defer c.Close()
		}
	}
	if e.StartError != "" || e.ExitCode != 0 {
		return fmt.Errorf("%s, exit code %d", e.StartError, e.ExitCode)
	}
	return nil
}
