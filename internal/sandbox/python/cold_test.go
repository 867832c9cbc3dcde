package python

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// interpreter is resolved once for all tests.
var interpreter = sync.OnceValues(func() (*Interpreter, error) {
	return Resolve(context.Background(), "python3")
})

// outcome is what a cold start left behind.
type outcome struct {
	output string
	value  string // "" when unassigned
	reason string
	cpu    time.Duration
	exit   int // 128 + n for signal n
}

// runCold runs a request as doc.go says.
func runCold(t testing.TB, r *Request, env ...string) outcome {
	t.Helper()
	python, err := interpreter()
	if err != nil {
		t.Fatal(err)
	}
	frame, err := r.Frame()
	if err != nil {
		t.Fatal(err)
	}
	requestRead, requestWrite := pipe(t)
	valueRead, valueWrite := pipe(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	argv := python.Cold.Argv
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	cmd.Dir = t.TempDir()
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output // one pipe for both
	cmd.ExtraFiles = []*os.File{requestRead, valueWrite}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	requestRead.Close()
	valueWrite.Close()
	go func() {
		defer requestWrite.Close()
		_, _ = requestWrite.Write(append(python.Cold.Prologue[:len(python.Cold.Prologue):len(python.Cold.Prologue)], frame...))
	}()
	value, reason, err := ReadValue(valueRead, r.ValueBytes)
	if err != nil {
		t.Errorf("ReadValue: %v", err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if ctx.Err() != nil {
		t.Fatalf("still running after 20 s; output %q", output.String())
	}
	o := outcome{output: output.String(), value: string(value), reason: reason, exit: cmd.ProcessState.ExitCode(),
		cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		o.exit = 128 + int(status.Signal())
	}
	return o
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

func TestStartedAheadAndDropped(t *testing.T) {
	python, err := interpreter()
	if err != nil {
		t.Fatal(err)
	}
	requestRead, requestWrite := pipe(t)
	valueRead, valueWrite := pipe(t)
	argv := python.Cold.Argv
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.ExtraFiles = []*os.File{requestRead, valueWrite}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := requestWrite.Write(python.Cold.Prologue); err != nil {
		t.Fatal(err)
	}
	requestWrite.Close()
	valueWrite.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("dropped interpreter: %v", err)
	}
	if b, _ := io.ReadAll(valueRead); len(b) > 0 {
		t.Errorf("dropped interpreter sent %q", b)
	}
}
