package sandbox

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolworker/toolworker/internal/sandbox/warm"
)

// warmUp waits until something is ready for runs like s.
func warmUp(t testing.TB, r Runner, s *Spec) {
	t.Helper()
	w := r.(*runner).warmth
	kind, err := kindOf(s)
	if err != nil {
		t.Fatal(err)
	}
	// The lease is the demand.
	w.pool.Acquire(context.Background(), kind, w.starter(s)).Release(warm.Fine)
	eventually(t.(*testing.T), "something is ready", func() bool {
		l := w.pool.Acquire(context.Background(), kind, w.starter(s))
		defer l.Release(warm.Fine)
		_, ok := l.Slot()
		return ok
	})
}

func TestWarm(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		s := Spec{Project: "project", Code: []byte("print(1)"), Root: l.root, Writable: true, Limits: limits,
			Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"}}
		warmUp(l.T, l.runner, &s)
		for i := range 5 {
			r := l.python("print(%d)", i)
			l.wants(r, fmt.Sprintln(i))
			if !r.Warm {
				l.Error("run started cold")
			}
		}
	})
}
