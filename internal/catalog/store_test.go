package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// newStore is a store on a fresh bucket.
func newStore(t testing.TB) (*Store, jetstream.KeyValue, jetstream.JetStream) {
	t.Helper()
	server := startServer(t)
	js := server.connect()
	kv := server.bucket(js)
	s, err := OpenStore(t.Context(), js, testBucket)
	if err != nil {
		t.Fatal(err)
	}
	return s, kv, js
}

func mustApply(t testing.TB, s *Store, files map[string]string) *Applied {
	t.Helper()
	applied, err := s.Apply(t.Context(), writeFiles(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return applied
}

func mustSnapshot(t testing.TB, s *Store) *Snapshot {
	t.Helper()
	snapshot, faults, err := s.Snapshot(t.Context())
	if err != nil || len(faults) > 0 {
		t.Fatal(err, faults)
	}
	return snapshot
}

func tools(commands ...string) map[string]string {
	var b strings.Builder
	for _, c := range commands {
		name, command, _ := strings.Cut(c, "=")
		fmt.Fprintf(&b, "---\nkind: Tool\nname: %s\ncommand: [%s]\n", name, command)
	}
	return map[string]string{"tools.yaml": b.String()}
}

func TestApply(t *testing.T) {
	s, kv, _ := newStore(t)
	if got := mustSnapshot(t, s); len(got.List()) != 0 || got.Revision() != "" {
		t.Errorf("an empty bucket has %v, revision %q", got.List(), got.Revision())
	}
	files := tools("a=a1", "b=b1")
	files["p.yaml"] = "kind: Project\nid: p\nhost_sandbox_path: /srv/p\n"
	first := mustApply(t, s, files)
	if diff := cmp.Diff([]string{"project.p", "tool.a", "tool.b"}, first.Changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	snapshot := mustSnapshot(t, s)
	if commandOf(snapshot, "a") != "a1" || commandOf(snapshot, "b") != "b1" || snapshot.Revision() != fmt.Sprint(first.Revision) {
		t.Errorf("after the apply: %v, revision %s", snapshot.List(), snapshot.Revision())
	}
	p, ok := snapshot.Project("p")
	if !ok || p.HostSandboxPath != "/srv/p" {
		t.Errorf("project: %+v", p)
	}

	again := mustApply(t, s, files)
	if again.Revision != first.Revision || len(again.Changed) != 0 || len(again.Unchanged) != 3 {
		t.Errorf("the same once more: %+v", again)
	}
	second := mustApply(t, s, tools("b=b2", "c=c1"))
	if diff := cmp.Diff([]string{"tool.b", "tool.c"}, second.Changed); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	snapshot = mustSnapshot(t, s)
	if commandOf(snapshot, "a") != "a1" || commandOf(snapshot, "b") != "b2" || commandOf(snapshot, "c") != "c1" {
		t.Errorf("entries that are not in the directory stay: %v", snapshot.List())
	}
	value, err := kv.Get(t.Context(), "tool.c")
	if err != nil || string(value.Value()) != `{"command":["c1"],"kind":"Tool","name":"c"}` {
		t.Errorf("value of tool.c: %s, %v", value.Value(), err)
	}
}

func TestApplyAllOrNothing(t *testing.T) {
	s, kv, _ := newStore(t)
	mustApply(t, s, tools("a=a1"))
	before, err := kv.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir := writeFiles(t, map[string]string{
		"a.yaml":    "kind: Tool\nname: a\ncommand: [a2]\n",
		"bad.yaml":  "kind: Tool\nname: b\ncommand: b\n",
		"bad2.yaml": "kind: Tool\nname: c\ncommand: [python3, c.py]\n",
		"c.py":      strings.Repeat("#", maxCarried+1),
	})
	_, err = s.Apply(t.Context(), dir)
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("got %v", err)
	}
	want := []string{
		`bad.yaml:3: tool "b": /command: is string, expected an argv of at least one string`,
		`bad2.yaml:1: tool "c": /command/1: file beside the entry is larger than the 524288 bytes that the bucket carries`,
	}
	if diff := cmp.Diff(want, faultLines(dir, faults)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	after, err := kv.Status(t.Context())
	if err != nil || after.Values() != before.Values() {
		t.Errorf("something was written: %v, %v values before", after, before.Values())
	}
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a1" {
		t.Errorf("a has %q", got)
	}
	if _, err := s.Apply(t.Context(), t.TempDir()+"/nosuch"); err == nil {
		t.Error("a missing directory was applied")
	}
}

func TestApplyTakesOverWhatWasInterrupted(t *testing.T) {
	s, kv, _ := newStore(t)
	mustApply(t, s, tools("a=a1", "b=b1"))
	// An apply that was interrupted before its revision.
	if _, err := kv.PutString(t.Context(), "tool.a", `{"command":["a2"],"kind":"Tool","name":"a"}`); err != nil {
		t.Fatal(err)
	}
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a1" {
		t.Errorf("half of an apply is in force: a has %q", got)
	}
	left, err := kv.Get(t.Context(), "tool.a")
	if err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, tools("a=a2"))
	now, err := kv.Get(t.Context(), "tool.a")
	if err != nil || now.Revision() != left.Revision() {
		t.Errorf("the value was written once more: %v", err)
	}
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a2" {
		t.Errorf("a has %q", got)
	}
}

// Commits of several operators at once: none is lost.
func TestApplyConcurrently(t *testing.T) {
	s, _, _ := newStore(t)
	const operators = 8
	done := make(chan error, operators)
	for i := range operators {
		dir := writeFiles(t, tools(fmt.Sprintf("own-%d=x", i), fmt.Sprintf("shared=by-%d", i)))
		go func() {
			for {
				_, err := s.Apply(t.Context(), dir)
				if errors.Is(err, ErrConflict) {
					continue
				}
				done <- err
				return
			}
		}()
	}
	for range operators {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	snapshot := mustSnapshot(t, s)
	for i := range operators {
		if commandOf(snapshot, fmt.Sprintf("own-%d", i)) != "x" {
			t.Errorf("the commit of operator %d is lost", i)
		}
	}
	if !strings.HasPrefix(commandOf(snapshot, "shared"), "by-") {
		t.Errorf("shared: %q", commandOf(snapshot, "shared"))
	}
}

func TestGetAndDelete(t *testing.T) {
	s, kv, _ := newStore(t)
	files := tools("a=a1", "both=b")
	files["p.yaml"] = "kind: Project\nid: both\n---\nkind: Project\nid: p\n"
	mustApply(t, s, files)

	for name, want := range map[string]string{
		"a": `{"command":["a1"],"kind":"Tool","name":"a"}`, "tool.a": `{"command":["a1"],"kind":"Tool","name":"a"}`,
		"p": `{"id":"p","kind":"Project"}`, "project.both": `{"id":"both","kind":"Project"}`,
	} {
		if got, err := s.Get(t.Context(), name); err != nil || string(got) != want {
			t.Errorf("get %s: %s, %v", name, got, err)
		}
	}
	for name, want := range map[string]error{"nosuch": ErrNotFound, "tool.p": ErrNotFound, "both": ErrAmbiguous, "revision": ErrNotFound, "": ErrNotFound, "a b.*": ErrNotFound} {
		if _, err := s.Get(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("get %q: %v, want %v", name, err, want)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, want) {
			t.Errorf("delete %q: %v, want %v", name, err, want)
		}
	}
	if err := s.Delete(t.Context(), "project.both"); err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	snapshot := mustSnapshot(t, s)
	if _, ok := snapshot.Project("both"); ok || commandOf(snapshot, "a") != "" || commandOf(snapshot, "both") != "b" {
		t.Errorf("after the deletions: %v", snapshot.List())
	}
	if _, err := kv.Get(t.Context(), "tool.a"); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("the value is still there: %v", err)
	}
	mustApply(t, s, tools("a=a2"))
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a2" {
		t.Errorf("applied again a has %q", got)
	}
}

// A bucket that was filled with other means than apply is served as well.
func TestBucketFilledByHand(t *testing.T) {
	s, kv, _ := newStore(t)
	put := func(key, value string) {
		t.Helper()
		if _, err := kv.PutString(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	const a1, a2 = `{"kind":"Tool","name":"a","command":["a1"]}`, `{"kind":"Tool","name":"a","command":["a2"]}`
	put("tool.a", a1)
	put("project.p", `{"kind":"Project","id":"p"}`)
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a1" {
		t.Errorf("without a revision: %q", got)
	}
	put("revision", "1")
	put("tool.a", a2)
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a1" {
		t.Errorf("a change without a change of the revision: %q", got)
	}
	put("revision", "2")
	if got := commandOf(mustSnapshot(t, s), "a"); got != "a2" {
		t.Errorf("after the change of the revision: %q", got)
	}
	// The first apply takes over what is in force, no more.
	put("tool.a", a1)
	put("tool.late", `{"kind":"Tool","name":"late","command":["x"]}`)
	mustApply(t, s, tools("b=b1"))
	snapshot := mustSnapshot(t, s)
	if commandOf(snapshot, "a") != "a2" || commandOf(snapshot, "b") != "b1" || commandOf(snapshot, "late") != "" {
		t.Errorf("after the apply: %v, a has %q", snapshot.List(), commandOf(snapshot, "a"))
	}
	if _, ok := snapshot.Project("p"); !ok {
		t.Error("the project is gone")
	}
}

// Whoever can write to the bucket cannot make a worker take what is no entry.
func TestBucketValuesAreValidated(t *testing.T) {
	s, kv, _ := newStore(t)
	values := map[string]string{
		"tool.text":     `hello`,
		"tool.other":    `{"kind":"Tool","name":"another","command":["a"]}`,
		"tool.project":  `{"kind":"Project","id":"project"}`,
		"tool.twice":    `{"kind":"Tool","name":"twice","command":["a"],"command":["b"]}`,
		"tool.member":   `{"kind":"Tool","name":"member","command":["a"],"Enabled":false}`,
		"tool.good":     `{"kind":"Tool","name":"good","command":["a"]}`,
		"project.slash": `{"kind":"Project","id":"slash","host_sandbox_path":"/"}`,
		"tool.deep":     `{"kind":"Tool","name":"deep","command":["a"],"input_schema":` + strings.Repeat(`{"not":`, 500) + `{}` + strings.Repeat("}", 501),
		"tool.a.b":      `{"kind":"Tool","name":"a.b","command":["a"]}`,
		"stray":         `{}`,
	}
	for key, value := range values {
		if _, err := kv.PutString(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	snapshot, faults, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, f := range faults {
		got[f.Place.String()] = f.Reason
	}
	want := map[string]string{
		"tool.other": `the value is tool "another", expected tool "other"`, "tool.project": `the value is project "project", expected tool "project"`,
		"tool.member": "/Enabled: unknown member", "project.slash": `/host_sandbox_path: "/": expected an absolute path without NUL, not the root of all, or the empty string`,
	}
	for _, key := range []string{"tool.text", "tool.twice"} {
		if !strings.HasPrefix(got[key], "invalid JSON: ") {
			t.Errorf("%s: %q", key, got[key])
		}
		delete(got, key)
	}
	delete(got, "tool.deep") // deep or not, it must not crash
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if commandOf(snapshot, "good") != "a" {
		t.Error("the good entry is not there")
	}
}

func TestOpenStoreWithoutBucket(t *testing.T) {
	js := startServer(t).connect()
	if _, err := OpenStore(context.Background(), js, "nosuch"); !errors.Is(err, jetstream.ErrBucketNotFound) || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("got %v", err)
	}
}
