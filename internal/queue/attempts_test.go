package queue_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/toolworker/toolworker/internal/consume"
	"github.com/toolworker/toolworker/internal/queue/queuetest"
)

func TestAttemptsAreComparedAndSet(t *testing.T) {
	s := queuetest.Start(t)
	book := s.Fleet().Attempts()
	ctx := t.Context()
	rec, rev, err := book.Load(ctx, "p", "a")
	if err != nil || rev != 0 || rec != (consume.Record{}) {
		t.Fatalf("%+v at %d, %v", rec, rev, err)
	}
	first, err := book.Save(ctx, "p", "a", consume.Record{Open: 1, Started: true}, 0)
	if err != nil || first == 0 {
		t.Fatalf("%d, %v", first, err)
	}
	if _, err := book.Save(ctx, "p", "a", consume.Record{Open: 1, Started: true}, 0); !errors.Is(err, consume.ErrConflict) {
		t.Errorf("created twice: %v", err)
	}
	second, err := book.Save(ctx, "p", "a", consume.Record{Open: 2, Started: true}, first)
	if err != nil || second <= first {
		t.Fatalf("%d, %v", second, err)
	}
	if _, err := book.Save(ctx, "p", "a", consume.Record{Open: 7}, first); !errors.Is(err, consume.ErrConflict) {
		t.Errorf("on top of an old one: %v", err)
	}
	if rec, rev, err = book.Load(ctx, "p", "a"); err != nil || rev != second || rec.Open != 2 || !rec.Started {
		t.Errorf("%+v at %d, %v", rec, rev, err)
	}
	if rec, rev, err = book.Load(ctx, "q", "a"); err != nil || rev != 0 {
		t.Errorf("another project's: %+v at %d, %v", rec, rev, err)
	}
}

// TestAttemptsNeverLoseACount: two who write the same at once are two.
func TestAttemptsNeverLoseACount(t *testing.T) {
	s := queuetest.Start(t)
	var workers sync.WaitGroup
	const each = 40
	for range 3 {
		book := s.Fleet().Attempts()
		workers.Go(func() {
			for done := 0; done < each; {
				rec, rev, err := book.Load(t.Context(), "p", "a")
				if err == nil {
					rec.Failed++
					_, err = book.Save(t.Context(), "p", "a", rec, rev)
				}
				if err == nil {
					done++
				} else if !errors.Is(err, consume.ErrConflict) {
					t.Error(err)
					return
				}
			}
		})
	}
	workers.Wait()
	if rec, _, err := s.Fleet().Attempts().Load(t.Context(), "p", "a"); err != nil || rec.Failed != 3*each {
		t.Errorf("%d counted of %d, %v", rec.Failed, 3*each, err)
	}
}
