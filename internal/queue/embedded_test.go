package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/queue"
)

func startEmbedded(t *testing.T, o queue.EmbeddedOptions) *queue.Embedded {
	t.Helper()
	e, err := queue.StartEmbedded(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Shutdown)
	return e
}

func TestEmbeddedServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	began := time.Now()
	e := startEmbedded(t, queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("ready after %s", took)
	}
	token, err := queue.ReadToken(dir)
	if err != nil || token != e.Token() || len(token) < 20 {
		t.Fatalf("token %q in the file, %q in force: %v", token, e.Token(), err)
	}
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("token file %v: %v", info.Mode(), err)
	}
	if strings.HasSuffix(e.URL(), ":0") || strings.Contains(e.URL(), token) {
		t.Errorf("url %s", e.URL())
	}

	inProcess, err := queue.Connect(t.Context(), e.Options(queue.Options{Name: "worker"}))
	if err != nil {
		t.Fatal(err)
	}
	defer inProcess.Close()
	if _, err := inProcess.Ensure(t.Context(), queue.Topology{}); err != nil {
		t.Fatal(err)
	}
	overTCP, err := queue.Connect(t.Context(), queue.Options{URL: e.URL(), Token: token})
	if err != nil {
		t.Fatal(err)
	}
	defer overTCP.Close()
	if diffs, err := overTCP.Diff(t.Context(), queue.Topology{}); err != nil || len(diffs) > 0 {
		t.Errorf("differences %v, %v", diffs, err)
	}
	for _, wrong := range []string{"", "guess"} {
		if c, err := queue.Connect(t.Context(), queue.Options{URL: e.URL(), Token: wrong, Wait: wrong != ""}); !errors.Is(err, queue.ErrRefused) {
			if c != nil {
				c.Close()
			}
			t.Errorf("token %q: %v, expected a refusal", wrong, err)
		}
	}
}

func TestEmbeddedServerKeepsItsTokenAndItsStreams(t *testing.T) {
	dir := t.TempDir()
	var token string
	for round := range 2 {
		e, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		c, err := queue.Connect(t.Context(), e.Options(queue.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			token = e.Token()
			_, err = c.Ensure(t.Context(), queue.Topology{})
		} else if diffs, diffErr := c.Diff(t.Context(), queue.Topology{}); len(diffs) > 0 || e.Token() != token {
			t.Errorf("after a restart: token %q, expected %q; differences %v, %v", e.Token(), token, diffs, diffErr)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		e.Shutdown()
		e.Shutdown() // idempotent
	}
}

func TestEmbeddedServerSaysWhatIsTaken(t *testing.T) {
	dir := t.TempDir()
	e := startEmbedded(t, queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
	port := strings.TrimPrefix(e.URL(), "nats://")
	for want, o := range map[string]queue.EmbeddedOptions{
		"is used by another worker":      {Listen: "127.0.0.1:0", DataDir: dir},
		port + " is in use":              {Listen: port, DataDir: t.TempDir()},
		`"nonsense": expected host:port`: {Listen: "nonsense", DataDir: t.TempDir()},
		"expected a port between":        {Listen: "127.0.0.1:99999", DataDir: t.TempDir()},
		"make data directory":            {Listen: "127.0.0.1:0", DataDir: filepath.Join(dir, "token", "below-a-file")},
	} {
		if e, err := queue.StartEmbedded(o); err == nil || !strings.Contains(err.Error(), want) {
			if e != nil {
				e.Shutdown()
			}
			t.Errorf("%+v: %v, expected %s", o, err, want)
		}
	}
}

func TestEmbeddedServerThatFailedLeavesNothingTaken(t *testing.T) {
	dir := t.TempDir()
	other := startEmbedded(t, queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: t.TempDir()})
	if _, err := queue.StartEmbedded(queue.EmbeddedOptions{Listen: strings.TrimPrefix(other.URL(), "nats://"), DataDir: dir}); err == nil {
		t.Fatal("two servers on one port")
	}
	startEmbedded(t, queue.EmbeddedOptions{Listen: "127.0.0.1:0", DataDir: dir})
}

func TestReadTokenOfNobody(t *testing.T) {
	if _, err := queue.ReadToken(t.TempDir()); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.ReadToken(dir); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("%v", err)
	}
}
