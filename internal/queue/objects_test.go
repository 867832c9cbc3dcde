package queue_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
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

// Readers that give little at a time make whole chunks all the same, in the
// form that every client of NATS reads; what was there before is removed.
func TestUploadIsAnObjectOfNATS(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	store, err := c.JetStream().ObjectStore(t.Context(), "tool_payloads")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.PutBytes(t.Context(), "p/a/stdout", bytes.Repeat([]byte("x"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789"), 200_000)
	for range 2 {
		if _, err := c.Payloads().Put(t.Context(), "p", "a", "stdout", iotest.OneByteReader(bytes.NewReader(data))); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.GetBytes(t.Context(), "p/a/stdout") // checks the digest
	if err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	info, err := store.GetInfo(t.Context(), "p/a/stdout")
	if err != nil || info.Chunks != 16 || info.Size != 2_000_000 || info.Bucket != "tool_payloads" {
		t.Errorf("%+v, %v", info, err)
	}
	status, err := store.Status(t.Context())
	if err != nil || status.Size() > 2_100_000 {
		t.Errorf("%d bytes are stored, %v", status.Size(), err)
	}
}

// Many large objects at once are more than a stream takes ahead of its disk.
func TestManyUploadsAtOnce(t *testing.T) {
	s := queuetest.Start(t)
	c := s.Fleet()
	data := bytes.Repeat([]byte("0123456789abcdef"), 8<<16) // 8 MiB
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			ref, err := c.Payloads().Put(t.Context(), "p", fmt.Sprint(i), "stdout", bytes.NewReader(data))
			if err != nil || ref.SizeBytes != int64(len(data)) || ref.SHA256 != sum(data) {
				t.Errorf("%d: %+v, %v", i, ref, err)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Payloads().Put(ctx, "p", "late", "stdout", bytes.NewReader(data)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// A connection that is lost ends an upload at once, and the next one waits
// for the server.
func TestUploadWhileTheServerRestarts(t *testing.T) {
	s := queuetest.Start(t)
	c := s.FleetLater()
	if _, err := c.Ensure(t.Context(), queue.Topology{}); err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		_, err := c.Payloads().Put(context.Background(), "p", "a", "stdout", r)
		_ = r.CloseWithError(err)
		failed <- err
	}()
	if _, err := w.Write(bytes.Repeat([]byte("x"), 4<<20)); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	queuetest.Until(t, "the connection is lost", func() bool { return !c.Connected() })
	for { // more than may be under way without an answer
		if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<20)); err != nil {
			break
		}
	}
	if err := <-failed; err == nil {
		t.Error("an upload outlived its connection")
	}
	stored := make(chan error, 1)
	go func() {
		_, err := c.Payloads().Put(context.Background(), "p", "a", "stdout", strings.NewReader("again"))
		stored <- err
	}()
	s.Start()
	if err := <-stored; err != nil {
		t.Error(err)
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
