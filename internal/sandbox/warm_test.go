package sandbox

import (
	"fmt"
	"testing"
)

// warmUp waits until something is ready for runs like s.
func warmUp(t *testing.T, r Runner, s *Spec) {
	t.Helper()
	if err := r.(Preparer).Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func TestSpawn(t *testing.T) {
	for _, level := range allLevels {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			if !tried(level) {
				t.Skipf("%s leaves out level %s", levelsEnv, level)
			}
			r, err := New(Config{Level: level, Warm: WarmSpawn})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			l := &lab{T: t, runner: r, level: level, root: newRoot(t)}
			s := Spec{Project: "project", Code: []byte("print(1)"), Root: l.root, Writable: true, Limits: limits,
				Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}}
			for i := range 3 {
				warmUp(t, r, &s)
				r := l.python("import resource\nprint(%d, resource.getrlimit(resource.RLIMIT_NOFILE))\nresult = input_data", i)
				l.wants(r, fmt.Sprintln(i, "(128, 128)"))
				if !r.Warm || string(r.Value) != "{}" {
					l.Errorf("got %v", r)
				}
			}
		})
	}
}

// Runs one after the other, in the same slot.
func TestWarm(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		for i := range 5 {
			l.wants(l.python("print(%d)", i), fmt.Sprintln(i))
		}
	})
}
