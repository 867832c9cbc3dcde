package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/sandbox"
	"github.com/toolworker/toolworker/internal/tool"
)

const deadline = 20 * time.Second

// runnerFunc is a Runner without processes.
type runnerFunc func(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error)

func (f runnerFunc) Run(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	return f(ctx, s)
}
func (runnerFunc) Close() error { return nil }

// echo answers with the input, and with the arguments on stderr.
func echo(_ context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
	_, _ = s.Stdout.Write(s.Input)
	_, _ = io.WriteString(s.Stderr, strings.Join(s.Argv, " "))
	return &sandbox.Exit{}, nil
}

// pair starts an agent with this runner and a session to it.
func pair(t *testing.T, r sandbox.Runner, times timing) *Session {
	t.Helper()
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, far, ServeConfig{Nonce: "n", Runner: r, ReadFile: readNothing, Stage: stageNowhere})
		_ = far.Close()
	}()
	s, err := newSession(t.Context(), near, "n", times)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		select {
		case <-served:
		case <-time.After(deadline):
			t.Error("agent outlives its session")
		}
	})
	return s
}

func readNothing(_ context.Context, _, path string, _ int64, w io.Writer) (int64, error) {
	if path == "missing" {
		return 0, errors.New("missing: no such file")
	}
	n, err := io.WriteString(w, strings.Repeat(path[:min(len(path), 4)], 100_000))
	return int64(n), err
}

func stageNowhere(key string, tar []byte) (string, error) {
	if key == "full" {
		return "", errors.New("no room")
	}
	return fmt.Sprintf("/staged/%s/%d", key, len(tar)), nil
}

func TestRunCarriesEverything(t *testing.T) {
	t.Parallel()
	sent := &sandbox.Spec{
		Project: "p", Code: []byte("print(1)"), Name: "n", Input: []byte(`{"a":1}`), Env: []string{"A=b"},
		Root: "/workspace", Writable: true, Protect: []string{".git"}, ReadOnly: []string{"/opt"}, Network: true,
		Least: tool.IsolationReduced, Limits: tool.Limits{TimeoutSeconds: 1.5, PIDs: 3},
	}
	answer := sandbox.Exit{
		Code: 3, Signal: "SIGTERM", TimedOut: true, Hit: tool.OutOfMemory, HitName: "memory",
		Value: []byte(`{"x":9007199254740993}`), ValueError: "none", Duration: time.Second,
		Changes: []tool.Change{{Path: "a", Change: tool.Created}}, ChangesTruncated: true,
		Usage:   tool.Usage{CPUMS: 1.5, MaxRSSBytes: 7},
		Sandbox: tool.SandboxMetadata{Isolation: tool.IsolationReduced, Mechanisms: []string{"landlock"}, Missing: []string{"user"}},
	}
	var got sandbox.Spec
	s := pair(t, runnerFunc(func(_ context.Context, spec *sandbox.Spec) (*sandbox.Exit, error) {
		got = *spec
		return &answer, nil
	}), defaultTiming)
	exit, err := s.Run(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&answer, exit); diff != "" {
		t.Errorf("exit differs (-sent +got):\n%s", diff)
	}
	got.Stdout, got.Stderr = nil, nil
	if diff := cmp.Diff(*sent, got); diff != "" {
		t.Errorf("spec differs (-sent +got):\n%s", diff)
	}
}

func TestInputOfManyFramesIsIntact(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(echo), defaultTiming)
	input := bytes.Repeat([]byte("0123456789abcdef"), 1<<19) // 8 MiB
	var out, errs bytes.Buffer
	_, err := s.Run(t.Context(), &sandbox.Spec{Argv: []string{"a", "b"}, Input: input, Stdout: &out, Stderr: &errs})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), input) {
		t.Errorf("%d bytes came back of %d", out.Len(), len(input))
	}
	if errs.String() != "a b" {
		t.Errorf("stderr %q", errs.String())
	}
}

func TestManyRunsAtOnceKeepApart(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(echo), defaultTiming)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			input := bytes.Repeat([]byte{byte(i)}, 100_000+i)
			var out bytes.Buffer
			if _, err := s.Run(t.Context(), &sandbox.Spec{Argv: []string{"x"}, Input: input, Stdout: &out}); err != nil {
				t.Error(err)
			}
			if !bytes.Equal(out.Bytes(), input) {
				t.Errorf("run %d got what is not its own", i)
			}
		})
	}
	wg.Wait()
}

func TestOutputIsCutAtTheSource(t *testing.T) {
	t.Parallel()
	const limit = 300_000
	s := pair(t, runnerFunc(func(_ context.Context, spec *sandbox.Spec) (*sandbox.Exit, error) {
		for range 100 {
			_, _ = spec.Stdout.Write(make([]byte, 50_000))
		}
		return &sandbox.Exit{}, nil
	}), defaultTiming)
	var out bytes.Buffer
	spec := &sandbox.Spec{Argv: []string{"x"}, Stdout: &out, Limits: tool.Limits{MaxOutputBytes: limit}}
	if _, err := s.Run(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if out.Len() != limit+1 {
		t.Errorf("%d bytes arrived, want one more than the cap of %d", out.Len(), limit)
	}
}

// gate is a sink that takes nothing until it is opened.
type gate struct{ open chan struct{} }

func (g gate) Write(p []byte) (int, error) {
	<-g.open
	return len(p), nil
}

func TestSlowConsumerHoldsUpOnlyItsOwnRun(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(echo), defaultTiming)
	g := gate{make(chan struct{})}
	slow := make(chan error, 1)
	go func() {
		_, err := s.Run(t.Context(), &sandbox.Spec{Argv: []string{"x"}, Input: make([]byte, 4<<20), Stdout: g})
		slow <- err
	}()
	for range 20 {
		var out bytes.Buffer
		if _, err := s.Run(t.Context(), &sandbox.Spec{Argv: []string{"x"}, Input: make([]byte, 1<<20), Stdout: &out}); err != nil {
			t.Fatal(err)
		}
		if out.Len() != 1<<20 {
			t.Fatalf("%d bytes", out.Len())
		}
	}
	close(g.open)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

// untilCancelled runs until somebody ends it.
func untilCancelled(ctx context.Context, _ *sandbox.Spec) (*sandbox.Exit, error) {
	<-ctx.Done()
	return &sandbox.Exit{Code: 137, Signal: "SIGKILL"}, nil
}

func TestCancelEndsOneRun(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(untilCancelled), defaultTiming)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*time.Millisecond, cancel)
	exit, err := s.Run(ctx, &sandbox.Spec{Argv: []string{"x"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit.Signal != "SIGKILL" {
		t.Errorf("signal %q", exit.Signal)
	}
	if err := s.Err(); err != nil {
		t.Errorf("the session ended with it: %v", err)
	}
}

func TestAgentEndsItsRunsWithItsInput(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(t.Context(), far, far, ServeConfig{Nonce: "n", Runner: runnerFunc(
			func(ctx context.Context, s *sandbox.Spec) (*sandbox.Exit, error) {
				defer close(ended)
				return untilCancelled(ctx, s)
			})})
		_ = far.Close()
	}()
	s, err := NewSession(t.Context(), near, "n")
	if err != nil {
		t.Fatal(err)
	}
	running := make(chan error, 1)
	go func() {
		_, err := s.Run(context.Background(), &sandbox.Spec{Argv: []string{"x"}})
		running <- err
	}()
	waitFor(t, func() bool { return s.busy() })
	_ = s.Close()
	if err := <-running; !errors.Is(err, ErrLost) || !isFault(err) {
		t.Errorf("run of a closed session: %v, want a fault around ErrLost", err)
	}
	select {
	case <-served:
	case <-time.After(deadline):
		t.Fatal("agent did not end")
	}
	select {
	case <-ended:
	default: // the run frame never arrived
	}
	if _, err := s.Run(t.Context(), &sandbox.Spec{Argv: []string{"x"}}); !isFault(err) {
		t.Errorf("run after the end: %v, want a fault", err)
	}
}

func TestSilentAgentIsGivenUp(t *testing.T) {
	t.Parallel()
	short := timing{hello: deadline, ping: 10 * time.Millisecond, silence: 50 * time.Millisecond, grace: 20 * time.Millisecond}
	for name, test := range map[string]struct {
		ctx  func(*testing.T) context.Context
		spec *sandbox.Spec
		t    timing
	}{
		"while it runs": {(*testing.T).Context, &sandbox.Spec{Argv: []string{"x"}}, short},
		"after its time": {
			(*testing.T).Context, &sandbox.Spec{Argv: []string{"x"}, Limits: tool.Limits{TimeoutSeconds: 0.01}},
			timing{hello: deadline, ping: time.Hour, grace: short.grace},
		},
		"after a cancel": {func(t *testing.T) context.Context {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			return ctx
		}, &sandbox.Spec{Argv: []string{"x"}}, timing{hello: deadline, ping: time.Hour, grace: short.grace}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			defer far.Close()
			go func() { // says hello, then reads and never speaks
				_ = greetAs(far, "n")
				_, _ = io.Copy(io.Discard, far)
			}()
			s, err := newSession(t.Context(), near, "n", test.t)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := s.Run(test.ctx(t), test.spec); !errors.Is(err, ErrUnresponsive) || !isFault(err) {
				t.Errorf("got %v, want a fault around ErrUnresponsive", err)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	s := pair(t, runnerFunc(echo), defaultTiming)
	var b bytes.Buffer
	n, err := s.ReadFile(t.Context(), "/", "name", 1<<20, &b)
	if err != nil || n != 400_000 || b.Len() != 400_000 {
		t.Errorf("%d bytes, %d written, %v", n, b.Len(), err)
	}
	if _, err := s.ReadFile(t.Context(), "/", "missing", 1, &b); err == nil || isFault(err) {
		t.Errorf("missing file: %v, want an error that is no fault", err)
	}
	if _, err := s.ReadFile(t.Context(), "/", "name", 399_999, io.Discard); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("too large a file: %v", err)
	}
}

func (s *Session) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls) > 0
}

func isFault(err error) bool {
	var f *tool.Fault
	return errors.As(err, &f)
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); !ok(); {
		if time.Now().After(end) {
			t.Fatal("condition not met in time")
		}
		time.Sleep(time.Millisecond)
	}
}

func greetAs(w io.Writer, nonce string) error {
	doc, err := encode(Hello{Version: protocolVersion, Nonce: nonce})
	if err != nil {
		return err
	}
	return newFrameWriter(w).write(kindHello, 0, []byte{0}, doc)
}
