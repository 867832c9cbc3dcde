package consume

import (
	"context"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// TestLedgerCountsLostWorkers lets a request live through any sequence of
// ends, and compares the book with the truth: it never counts fewer lost
// workers than there were, and never more than one too many.
func TestLedgerCountsLostWorkers(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.Background()
		book := newMemory(t)
		k := requestKey{"p", "a"}
		lost, failures := 0, 0
		slack := 0 // workers lost while they gave the request back
		for count := uint64(1); ; count++ {
			d := Delivery{Count: count}
			l := newLedger(book, k, d)
			if !d.first() {
				if err := l.load(ctx, d); err != nil {
					rt.Fatal(err)
				}
			}
			if l.rec.Open < lost || l.rec.Open > lost+slack {
				rt.Fatalf("delivery %d: %d lost workers counted, the truth is %d", count, l.rec.Open, lost)
			}
			if err := l.verdict(false); err != nil {
				if l.rec.Open < MaxLost {
					rt.Fatalf("verdict %v at %d", err, l.rec.Open)
				}
				return
			}
			if count > 30 {
				return
			}
			end := rapid.SampledFrom([]string{"lost", "lost before the start", "drained", "held", "retried", "done"}).Draw(rt, "end")
			if end == "lost before the start" && !d.first() {
				continue // it was never started, and the book does not know of it
			}
			if end != "held" && end != "lost before the start" {
				if err := l.begin(ctx, false); err != nil {
					rt.Fatal(err)
				}
			}
			if got, want := l.attempt(), failures+lost+1; got < want || got > want+slack {
				rt.Fatalf("delivery %d: attempt %d, expected %d", count, got, want)
			}
			switch end {
			case "lost":
				lost++
			case "lost before the start":
				slack++ // taken for a start
			case "drained", "held":
				if err := l.giveBack(ctx, func(*Record) {}); err != nil {
					rt.Fatal(err)
				}
			case "retried":
				if err := l.giveBack(ctx, func(r *Record) { r.Failed++ }); err != nil {
					rt.Fatal(err)
				}
				failures++
			case "done":
				return
			}
		}
	})
}

func TestLedgerOnTopOfSomebodyElse(t *testing.T) {
	ctx := context.Background()
	book := newMemory(t)
	k := requestKey{"p", "a"}
	// A worker is suspended during its first delivery; another one takes over.
	suspended := newLedger(book, k, Delivery{Count: 1})
	second := newLedger(book, k, Delivery{Count: 2})
	if err := second.load(ctx, Delivery{Count: 2}); err != nil || second.rec.Open != 1 {
		t.Fatalf("record %+v, %v", second.rec, err)
	}
	if err := second.begin(ctx, false); err != nil || second.rec.Open != 2 {
		t.Fatalf("record %+v, %v", second.rec, err)
	}
	// It wakes up and gives the request back: it was not lost after all.
	if err := suspended.giveBack(ctx, func(*Record) {}); err != nil {
		t.Fatal(err)
	}
	if rec := book.records[k]; rec.Open != 1 {
		t.Errorf("record %+v, expected the start of the second only", rec)
	}
	if err := second.giveBack(ctx, func(*Record) {}); err != nil {
		t.Fatal(err)
	}
	if rec := book.records[k]; rec.Open != 0 {
		t.Errorf("record %+v, expected no open start", rec)
	}
}

func TestLedgerMarksWhatMustNotStartTwice(t *testing.T) {
	ctx := context.Background()
	book := newMemory(t)
	k := requestKey{"p", "a"}
	a, b := newLedger(book, k, Delivery{Count: 1}), newLedger(book, k, Delivery{Count: 1})
	if err := a.begin(ctx, true); err != nil {
		t.Fatal(err)
	}
	if err := b.begin(ctx, true); !errors.Is(err, errStartedBefore) {
		t.Errorf("second start: %v", err)
	}
	if a.attempt() != 1 {
		t.Errorf("attempt %d", a.attempt())
	}
}

func TestLedgerEndsEndlessConflicts(t *testing.T) {
	l := newLedger(contested{newMemory(t)}, requestKey{"p", "a"}, Delivery{Count: 1})
	if err := l.giveBack(context.Background(), func(*Record) {}); !errors.Is(err, ErrConflict) {
		t.Errorf("%v", err)
	}
}

type contested struct{ *memory }

func (contested) Save(context.Context, string, string, Record, uint64) (uint64, error) {
	return 0, ErrConflict
}
