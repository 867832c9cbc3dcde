package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/command"
)

// newFleet starts a fleet for one test, and gives the flags that find it.
func newFleet(t *testing.T) (f *fleet, flags []string) {
	t.Helper()
	dir := t.TempDir()
	f, err := startFleet(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	return f, []string{"--nats-url", f.server.URL(), "--data-dir", dir}
}

func TestInterruptWhileWaiting(t *testing.T) {
	for name, args := range map[string][]string{
		"run":  {"run", "silent", "-p", "demo"},
		"live": {"run", "silent", "-p", "demo", "--stream"},
		"send": {"send", "-", "--wait"},
	} {
		t.Run(name, func(t *testing.T) {
			f, flags := newFleet(t)
			ctx, interrupt := context.WithCancel(t.Context())
			var stdout, stderr bytes.Buffer
			ended := make(chan error)
			go func() {
				stdin := strings.NewReader(`{"project":"demo","tool":"silent"}`)
				ended <- run(ctx, t.Context(), append(flags, args...), command.Streams{In: stdin, Out: &stdout, Err: &stderr})
			}()
			<-f.silent
			interrupt()
			err := <-ended
			if code := command.ExitCode(err); code != command.NoResult && name != "send" || !strings.Contains(err.Error(), "interrupted") {
				t.Errorf("exit code %d, %v", code, err)
			}
		})
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	f, flags := newFleet(t)
	before := f.server.Server().NumSubscriptions()
	ctx, interrupt := context.WithCancel(t.Context())
	ended := make(chan error)
	var stdout bytes.Buffer
	go func() {
		ended <- run(ctx, t.Context(), append(flags, "watch", "--json"), command.Streams{Out: &stdout, Err: &stdout})
	}()
	eventually(t, func() bool { return f.server.Server().NumSubscriptions() > before })
	interrupt()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// eventually waits for a condition that something else brings about.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	for ticks := time.Tick(time.Millisecond); !holds(); {
		select {
		case <-ticks:
		case <-deadline:
			t.Fatal("it does not come about")
		}
	}
}
