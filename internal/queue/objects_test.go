package queue_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/queue"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
	"github.com/toolworker/toolworker/internal/tool"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func TestPayloads(t *testing.T) {
	s := queuetest.Start(t)
	store := s.Fleet().Payloads()
	for _, data := range [][]byte{{}, []byte("small"), bytes.Repeat([]byte("0123456789"), 100_000)} {
		ref, err := store.Put(t.Context(), "p", "a", "stdout", bytes.NewReader(data))
		if err != nil || ref != (tool.Ref{Object: "p/a/stdout", SizeBytes: int64(len(data)), SHA256: sum(data)}) {
			t.Fatalf("%+v, %v", ref, err)
		}
		r, err := store.Open(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes, %v, expected %d", len(got), err, len(data))
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		ref.SHA256 = strings.Repeat("0", 64)
		if r, err = store.Open(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), "expected") {
			t.Errorf("another object than the one meant: %v", err)
		}
		_ = r.Close()
	}
	if _, err := store.Open(t.Context(), tool.Ref{Object: "p/b/stdout"}); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("no object: %v", err)
	}
	broken := iotest.ErrReader(errors.New("disk trouble"))
	if _, err := store.Put(t.Context(), "p", "c", "stdout", io.MultiReader(strings.NewReader("half"), broken)); err == nil {
		t.Error("half a payload was stored")
	}
	if _, err := store.Open(t.Context(), tool.Ref{Object: "p/c/stdout"}); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("half a payload can be read: %v", err)
	}
}

func TestInputs(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	data := bytes.Repeat([]byte("x"), 700<<10)
	ref, err := c.Inputs().Put(t.Context(), "p", "a", bytes.NewReader(data))
	if err != nil || ref != "nats-obj://tool_inputs_p/a?sha256="+sum(data) {
		t.Fatalf("%s, %v", ref, err)
	}
	if got, err := c.Inputs().Get(t.Context(), "p", "a", sum(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if _, err := c.Inputs().Get(t.Context(), "p", "a", sum(nil)); !errors.Is(err, queue.ErrMismatch) || strings.Contains(err.Error(), sum(data)) {
		t.Errorf("another hash: %v", err)
	}
	for _, project := range []string{"p", "q"} { // no object, no store
		if _, err := c.Inputs().Get(t.Context(), project, "b", sum(data)); !errors.Is(err, queue.ErrNotFound) {
			t.Errorf("project %s: %v", project, err)
		}
	}
	if _, err := c.Inputs().Put(t.Context(), "no.project", "a", bytes.NewReader(data)); err == nil {
		t.Error("a store for something that is no project")
	}
}

func TestInputsAreOfTheProjectOnly(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	data := []byte(`{"project":"p","inline":{"code":"pass"}}`)
	for _, project := range []string{"p", "other"} {
		if _, err := c.Inputs().Put(t.Context(), project, "a", bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []struct {
		ref event.Reference
		ok  bool
	}{
		{event.Reference{Project: "p", Bucket: "tool_inputs_p", Object: "a", SHA256: sum(data)}, true},
		{event.Reference{Project: "p", Bucket: "acme_inputs_p", Object: "a", SHA256: sum(data)}, false},
		{event.Reference{Project: "p", Bucket: "tool_inputs_other", Object: "a", SHA256: sum(data)}, false},
		{event.Reference{Project: "p", Bucket: "tool_inputs_p", Object: "b", SHA256: sum(data)}, false},
		{event.Reference{Project: "p", Bucket: "tool_inputs_p", Object: "a", SHA256: sum(nil)}, false},
	} {
		got, err := c.Inputs().Fetch(t.Context(), &r.ref)
		var refused *tool.Error
		if r.ok && (err != nil || !bytes.Equal(got, data)) || !r.ok && (!errors.As(err, &refused) || refused.Code != tool.InvalidRequest) {
			t.Errorf("%+v: %q, %v", r.ref, got, err)
		}
	}
}
