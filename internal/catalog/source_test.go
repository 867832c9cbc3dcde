package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

// runSource opens a source and follows it until the test ends.
func runSource(t testing.TB, o Options) *Source {
	t.Helper()
	if o.Interval == 0 {
		o.Interval = 20 * time.Millisecond
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

func waitReady(t testing.TB, s *Source) {
	t.Helper()
	select {
	case <-s.Ready():
	case <-time.After(deadline):
		t.Fatal("the source does not become ready:", s.Err())
	}
}

func TestDirectorySource(t *testing.T) {
	dir := writeFiles(t, tools("a=a1"))
	s := runSource(t, Options{Dir: dir})
	waitReady(t, s)
	if got := commandOf(s.Snapshot(), "a"); got != "a1" {
		t.Fatalf("a has %q", got)
	}
	old, changed := s.Snapshot(), s.Changed()
	writeFile(t, filepath.Join(dir, "more.yaml"), "kind: Tool\nname: b\ncommand: [b1]\n")
	select {
	case <-changed:
	case <-time.After(deadline):
		t.Fatal("the new file is not seen")
	}
	if got := commandOf(s.Snapshot(), "b"); got != "b1" {
		t.Errorf("b has %q", got)
	}
	if commandOf(old, "b") != "" {
		t.Error("a snapshot that was handed out has changed")
	}

	writeFile(t, filepath.Join(dir, "more.yaml"), "kind: Tool\nname: b\ncommand: b2\n")
	eventually(t, "the fault is reported", func() bool { return s.Err() != nil })
	if err := s.Err(); !strings.Contains(err.Error(), "more.yaml:3: ") {
		t.Errorf("the error names no place: %v", err)
	}
	if got := commandOf(s.Snapshot(), "b"); got != "b1" {
		t.Errorf("the last good one does not stay: b has %q", got)
	}
	writeFile(t, filepath.Join(dir, "more.yaml"), "kind: Tool\nname: b\ncommand: [b3]\n")
	eventually(t, "b is b3", func() bool { return commandOf(s.Snapshot(), "b") == "b3" })
	eventually(t, "the error is gone", func() bool { return s.Err() == nil })
}

func TestDirectorySourceSurvivesItsDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalogue")
	writeFile(t, filepath.Join(dir, "a.yaml"), "kind: Tool\nname: a\ncommand: [a1]\n")
	s := runSource(t, Options{Dir: dir})
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing directory is reported", func() bool { return s.Err() != nil })
	if got := commandOf(s.Snapshot(), "a"); got != "a1" {
		t.Errorf("the last good state does not stay: %q", got)
	}
	writeFile(t, filepath.Join(dir, "a.yaml"), "kind: Tool\nname: a\ncommand: [a2]\n")
	eventually(t, "the new directory is read", func() bool { return commandOf(s.Snapshot(), "a") == "a2" && s.Err() == nil })
}

func TestOpenFaults(t *testing.T) {
	if _, err := Open(t.Context(), Options{}); err == nil {
		t.Error("a source of nothing was opened")
	}
	if _, err := Open(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "nosuch")}); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("a missing directory: %v", err)
	}
	s, err := Open(t.Context(), Options{Dir: writeFiles(t, map[string]string{"x.yaml": "kind: Tool\nname: a\n---\nkind: Tool\nname: b\ncommand: [b]\n"})})
	if err != nil {
		t.Fatal(err)
	}
	if commandOf(s.Snapshot(), "b") != "b" || s.Err() == nil {
		t.Errorf("the good entry goes in and the bad one is reported: %v", s.Err())
	}
}

func TestLookUpInDirectory(t *testing.T) {
	dir := writeFiles(t, tools("a=a1"))
	s, err := Open(t.Context(), Options{Dir: dir}) // nobody follows it
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "more.yaml"), "kind: Project\nid: p\n")
	now, err := s.LookUp(t.Context(), KindProject, "p")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := now.Project("p"); !ok {
		t.Error("the new project is not found")
	}
	if now, err = s.LookUp(t.Context(), KindTool, "nosuch"); err != nil || commandOf(now, "nosuch") != "" {
		t.Errorf("an unknown tool: %v", err)
	}
}

func TestSourceProjects(t *testing.T) {
	made := &tool.Project{ID: "demo", HostSandboxPath: "/somewhere", Allow: tool.DefaultAllow()}
	dir := writeFiles(t, map[string]string{"p.yaml": "kind: Project\nid: demo\n---\nkind: Project\nid: other\n"})
	s, err := Open(t.Context(), Options{Dir: dir, Projects: []*tool.Project{made}})
	if err != nil {
		t.Fatal(err)
	}
	if p, _ := s.Snapshot().Project("demo"); p != made {
		t.Errorf("got %+v", p)
	}
	if _, ok := s.Snapshot().Project("other"); !ok {
		t.Error("the directory's own project is gone")
	}
}

func TestBucketSource(t *testing.T) {
	store, _, js := newStore(t)
	mustApply(t, store, tools("a=a1"))
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	waitReady(t, s)
	if got := commandOf(s.Snapshot(), "a"); got != "a1" {
		t.Errorf("a has %q", got)
	}
	mustApply(t, store, tools("a=a2"))
	eventually(t, "a is a2", func() bool { return commandOf(s.Snapshot(), "a") == "a2" })
	if err := store.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a is gone", func() bool { return commandOf(s.Snapshot(), "a") == "" })
	if s.Err() != nil {
		t.Error(s.Err())
	}
}

// A worker may be started before its server, and before its bucket.
func TestBucketSourceWaits(t *testing.T) {
	server := startServer(t)
	js := server.connect()
	server.stop()
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	eventually(t, "the missing server is reported", func() bool { return s.Err() != nil })
	select {
	case <-s.Ready():
		t.Fatal("ready without a catalogue")
	default:
	}
	server.start()
	eventually(t, "the missing bucket is reported", func() bool { return errors.Is(s.Err(), jetstream.ErrBucketNotFound) })
	server.bucket(js)
	waitReady(t, s)
	eventually(t, "the error is gone", func() bool { return s.Err() == nil })
}

// Changes made while the server restarts are seen, blind watchers or not.
func TestBucketSourceSurvivesRestarts(t *testing.T) {
	server := startServer(t)
	js := server.connect()
	server.bucket(js)
	store, err := OpenStore(t.Context(), js, testBucket)
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, store, tools("a=v0"))
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	waitReady(t, s)
	for i := 1; i <= 3; i++ {
		server.stop()
		server.start()
		dir := writeFiles(t, tools(fmt.Sprintf("a=v%d", i)))
		eventually(t, "the apply succeeds", func() bool {
			_, err := store.Apply(t.Context(), dir)
			return err == nil
		})
		eventually(t, "the change is seen", func() bool { return commandOf(s.Snapshot(), "a") == fmt.Sprint("v", i) })
	}
}

func TestLookUpInBucket(t *testing.T) {
	store, _, js := newStore(t)
	mustApply(t, store, tools("a=a1"))
	s, err := Open(t.Context(), Options{JetStream: js, Bucket: testBucket}) // nobody follows it
	if err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	for range 50 {
		asking.Go(func() {
			now, err := s.LookUp(t.Context(), KindTool, "a")
			if err != nil || commandOf(now, "a") != "a1" {
				t.Errorf("a: %v", err)
			}
		})
	}
	asking.Wait()
	mustApply(t, store, tools("b=b1"))
	now, err := s.LookUp(t.Context(), KindTool, "b")
	if err != nil || commandOf(now, "b") != "b1" {
		t.Errorf("b: %v", err)
	}
	now, err = s.LookUp(t.Context(), KindProject, "b")
	if err != nil || now.has(KindProject, "b") {
		t.Errorf("an unknown project: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.LookUp(cancelled, KindTool, "nosuch"); err == nil {
		t.Error("not found out, and no error")
	}
	if _, err := s.LookUp(cancelled, KindTool, "a"); err != nil {
		t.Errorf("what is known needs no look: %v", err)
	}
}

// Every state that a reader sees during applies is one whole apply.
func TestReadersSeeWholeApplies(t *testing.T) {
	store, _, js := newStore(t)
	const entries, applies = 120, 15
	state := func(n int) map[string]string {
		commands := make([]string, entries)
		for i := range commands {
			commands[i] = fmt.Sprintf("t%d=v%d", i, n)
		}
		return tools(commands...)
	}
	mustApply(t, store, state(0))
	s := runSource(t, Options{JetStream: js, Bucket: testBucket, Interval: time.Millisecond})
	waitReady(t, s)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers sync.WaitGroup
	whole := func(snapshot *Snapshot) {
		want := commandOf(snapshot, "t0")
		for i := range entries {
			if got := commandOf(snapshot, fmt.Sprintf("t%d", i)); got != want || want == "" {
				t.Errorf("revision %s: t0 has %q, t%d has %q", snapshot.Revision(), want, i, got)
				cancel()
				return
			}
		}
	}
	readers.Go(func() { // the worker's own
		for ctx.Err() == nil {
			changed := s.Changed()
			whole(s.Snapshot())
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	})
	for range 2 { // and some that begin from nothing each time
		readers.Go(func() {
			for ctx.Err() == nil {
				snapshot, _, err := store.Snapshot(ctx)
				if errors.Is(err, errLagging) {
					continue // overtaken again and again
				}
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				whole(snapshot)
			}
		})
	}
	for n := 1; n <= applies; n++ {
		mustApply(t, store, state(n))
	}
	eventually(t, "the last apply is in force", func() bool { return commandOf(s.Snapshot(), "t0") == fmt.Sprint("v", applies) })
	cancel()
	readers.Wait()
}

// Revisions that have fallen out of the history do not take the last good
// state away.
func TestBucketSourceKeepsWhatIsGone(t *testing.T) {
	store, kv, js := newStore(t)
	mustApply(t, store, tools("a=a1", "b=b1"))
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	waitReady(t, s)
	for range 6 { // somebody who does not know better
		if _, err := kv.PutString(t.Context(), "tool.a", `{}`); err != nil {
			t.Fatal(err)
		}
	}
	mustApply(t, store, tools("b=b2"))
	eventually(t, "b is b2", func() bool { return commandOf(s.Snapshot(), "b") == "b2" })
	if got := commandOf(s.Snapshot(), "a"); got != "a1" {
		t.Errorf("a has %q", got)
	}
	// Who begins now has it no more, and is told so.
	fresh, faults, err := store.Snapshot(t.Context())
	if err != nil || len(faults) != 1 || !strings.Contains(faults[0].Reason, "apply it again") || commandOf(fresh, "b") != "b2" {
		t.Errorf("a fresh reader: %v, %v", faults, err)
	}
	mustApply(t, store, tools("a=a1"))
	if got := commandOf(mustSnapshot(t, store), "a"); got != "a1" {
		t.Errorf("applied again a has %q", got)
	}
}
