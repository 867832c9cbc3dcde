package consume

import (
	"context"
	"errors"
	"time"
)

const maxConflicts = 10

// Why a request may not be started once more.
var (
	errWorkersLost   = errors.New("too many workers were lost while running it")
	errStartedBefore = errors.New("it was started before and is not idempotent")
)

// ledger keeps the record of one request during one delivery of it. The
// first delivery of a request that runs through costs nothing: it neither
// reads nor writes.
type ledger struct {
	book Attempts
	key  requestKey
	rec  Record
	rev  uint64
	// known: the record was read.
	known bool
	// counted: this delivery is one of rec.Open, or will be taken for one by
	// whoever gets the message next and finds no record.
	counted bool
}

func newLedger(book Attempts, key requestKey, d Delivery) *ledger {
	return &ledger{book: book, key: key, counted: d.first()}
}

// load reads the record of a request that was delivered before. None means
// that its first delivery ended without a word.
func (l *ledger) load(ctx context.Context, d Delivery) error {
	if err := l.reload(ctx); err != nil {
		return err
	}
	if l.rev == 0 && d.Count > 1 {
		l.rec.Open = 1
	}
	l.known = true
	return nil
}

func (l *ledger) reload(ctx context.Context) (err error) {
	l.rec, l.rev, err = l.book.Load(ctx, l.key.project, l.key.id)
	return err
}

// attempt counts the starts that ended or were lost, the one that begins now
// included.
func (l *ledger) attempt() int {
	if l.counted && l.rev != 0 {
		return l.rec.Failed + max(1, l.rec.Open)
	}
	return l.rec.Failed + l.rec.Open + 1
}

// verdict says whether the request may be started.
func (l *ledger) verdict(once bool) error {
	switch {
	case once && l.rec.Started:
		return errStartedBefore
	case l.rec.Open >= MaxLost:
		return errWorkersLost
	}
	return nil
}

// begin writes the start of a request down before it happens, where that is
// needed: on redeliveries, and once for what must not be started twice.
func (l *ledger) begin(ctx context.Context, once bool) error {
	if !l.known && !once {
		return nil
	}
	return l.update(ctx, func(rec *Record) error {
		if err := l.verdict(once); err != nil {
			return err
		}
		rec.Open++
		rec.Started = rec.Started || once
		rec.NotBefore = time.Time{}
		l.counted = true
		return nil
	})
}

// giveBack takes this delivery out of the open starts again, before its
// message goes back, and notes why by change.
func (l *ledger) giveBack(ctx context.Context, change func(*Record)) error {
	return l.update(ctx, func(rec *Record) error {
		if l.counted && rec.Open > 0 {
			rec.Open--
		}
		change(rec)
		return nil
	})
}

// update changes the record, again on top of what somebody else wrote meanwhile.
func (l *ledger) update(ctx context.Context, change func(*Record) error) error {
	for range maxConflicts {
		rec := l.rec
		if err := change(&rec); err != nil {
			return err
		}
		rev, err := l.book.Save(ctx, l.key.project, l.key.id, rec, l.rev)
		if err == nil {
			l.rec, l.rev = rec, rev
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := l.reload(ctx); err != nil {
			return err
		}
	}
	return ErrConflict
}
