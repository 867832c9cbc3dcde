package catalog

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSwitchKeys(t *testing.T) {
	for _, s := range []Switch{{SwitchPool, "default"}, {SwitchProject, "project-1"}, {SwitchTool, "file_read"}} {
		if got, ok := switchOf(s.key()); !ok || got != s {
			t.Errorf("%s: %v, %v", s.key(), got, ok)
		}
	}
	for _, key := range []string{"pause.worker.x", "pause.tool", "pause.tool.", "pause.tool.a.b", "tool.pause", "revision", "pause.", ""} {
		if s, ok := switchOf(key); ok {
			t.Errorf("%s is no switch, got %v", key, s)
		}
	}
}

func TestPaused(t *testing.T) {
	s := &Snapshot{switches: switches{{SwitchPool, "night"}: {}, {SwitchProject, "p"}: {}, {SwitchTool, "t"}: {}}}
	for _, tt := range []struct {
		pool, project, tool string
		want                bool
	}{
		{"default", "q", "u", false}, {"night", "q", "u", true}, {"default", "p", "u", true}, {"default", "q", "t", true},
		{"p", "t", "night", false}, // a name of another kind is another name
		{"default", "q", "", false},
	} {
		if got := s.Paused(tt.pool, tt.project, tt.tool); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	if (&Snapshot{}).Paused("default", "p", "t") {
		t.Error("without switches something is paused")
	}
}

// The switches are followed whatever the source of the entries.
func TestSwitchesAreFollowed(t *testing.T) {
	store, _, js := newStore(t)
	for name, dir := range map[string]string{"bucket": "", "directory": writeFiles(t, tools("a=a1"))} {
		t.Run(name, func(t *testing.T) {
			before := Switch{SwitchPool, "before"}
			if err := store.Pause(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			s := runSource(t, Options{Dir: dir, JetStream: js, Bucket: testBucket})
			waitReady(t, s)
			if !s.Snapshot().Paused("before", "p", "t") {
				t.Error("ready, and what was paused before is not")
			}
			revision := s.Snapshot().Revision()
			for _, w := range []Switch{{SwitchTool, "a"}, {SwitchProject, "p"}} {
				if err := store.Pause(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the tool is paused", func() bool { return s.Snapshot().Paused("default", "q", "a") })
			eventually(t, "the project is paused", func() bool { return s.Snapshot().Paused("default", "p", "") })
			if got := s.Snapshot().Revision(); got != revision {
				t.Errorf("a switch changed the revision of the entries from %q to %q", revision, got)
			}
			want := []Switch{before, {SwitchProject, "p"}, {SwitchTool, "a"}}
			if got, err := store.Switches(t.Context()); err != nil || !cmp.Equal(got, want) {
				t.Errorf("listed: %v, %v", got, err)
			}
			for _, w := range want {
				if err := store.Resume(t.Context(), w); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all is resumed", func() bool { return len(s.Snapshot().Switches()) == 0 })
			if err := store.Resume(t.Context(), before); !errors.Is(err, ErrNotFound) {
				t.Errorf("resumed twice: %v", err)
			}
		})
	}
	for _, bad := range []Switch{{SwitchTool, "a.b"}, {SwitchTool, ""}, {SwitchPool, "*"}} {
		if err := store.Pause(t.Context(), bad); err == nil {
			t.Errorf("%v was paused", bad)
		}
		if err := store.Resume(t.Context(), bad); err == nil {
			t.Errorf("%v was resumed", bad)
		}
	}
}
