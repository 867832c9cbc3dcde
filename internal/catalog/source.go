package catalog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/toolworker/toolworker/internal/tool"
)

// Options say where the catalogue is.
type Options struct {
	// Dir has the entries, as YAML files. "" reads them from the bucket.
	Dir string
	// JetStream and Bucket are where the switches are, and the entries when
	// Dir is "". Without JetStream there are no switches.
	JetStream jetstream.JetStream
	Bucket    string
	// Projects are there whatever the source says, and win over its own.
	Projects []*tool.Project
	// Interval is how often changes are looked for, 1 s when 0. Those in the
	// bucket are announced as well, and then read at once.
	Interval time.Duration
	Log      *slog.Logger // nothing is logged when nil
}

// reader is where entries come from. A nil snapshot says that they are as in prev.
type reader interface {
	refresh(ctx context.Context, prev *Snapshot) (*Snapshot, Faults, error)
}

// restShare is how much longer than a look at the directory the rest after it
// is: a large one on a slow disk costs a hundredth of the time at most.
const restShare = 100

// Source is a catalogue that follows its directory or bucket. Every read is
// lock-free and sees one whole state; a change is one step.
type Source struct {
	options  Options
	log      *slog.Logger
	entries  reader
	switches *switchReader // nil without JetStream
	scratch  *scratch      // nil for a directory

	current atomic.Pointer[Snapshot]
	turns   turnstile // one refresh at a time

	// What the refresh under way, and nobody else, may touch.
	base *Snapshot // as the reader said last, without Projects and switches
	held switches

	restFor atomic.Int64 // nanoseconds; the loop reads it

	mu       sync.Mutex
	faults   Faults
	err      error
	ready    chan struct{}
	isReady  bool
	onChange chan struct{}
}

// Open reads a directory at once; its bad entries are faults of the source
// (see Err), a directory that cannot be read at all is an error. A bucket is
// not read before Run, so that a worker can be started before its server.
func Open(ctx context.Context, o Options) (*Source, error) {
	if o.Interval <= 0 {
		o.Interval = time.Second
	}
	if o.Dir == "" && o.JetStream == nil {
		return nil, errors.New("open catalogue: expected a directory or a bucket")
	}
	s := &Source{
		options: o, log: o.Log, turns: newTurnstile(),
		ready: make(chan struct{}), onChange: make(chan struct{}), base: newSnapshot(),
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.current.Store(s.base.With(o.Projects...))
	if o.JetStream != nil {
		s.switches = &switchReader{bucket: &bucketHandle{js: o.JetStream, name: o.Bucket}}
	}
	if o.Dir == "" {
		s.scratch = &scratch{}
		s.entries = &bucket{handle: s.switches.bucket, scratch: s.scratch}
		return s, nil
	}
	s.entries = &directory{dir: o.Dir}
	if err := s.readEntries(ctx); err != nil {
		return nil, fmt.Errorf("open catalogue: %w", err)
	}
	if s.switches == nil {
		s.setReady()
	}
	return s, nil
}

// Snapshot is the catalogue now.
func (s *Source) Snapshot() *Snapshot { return s.current.Load() }

// Ready is closed once the catalogue has been read, switches included. Before
// that a snapshot says nothing about what there is.
func (s *Source) Ready() <-chan struct{} { return s.ready }

// Changed is closed at the next change of the snapshot. Ask for it before
// looking at the snapshot, so that no change is missed.
func (s *Source) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.onChange
}

// Err is what is wrong with the catalogue now: bad entries (Faults), or why it
// cannot be read. The last good state is in force meanwhile.
func (s *Source) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults.Err(), s.err)
}

// LookUp is for a name that the snapshot does not have: it looks once more
// where the entries come from, and returns what there is then. An error says
// that it could not be found out.
func (s *Source) LookUp(ctx context.Context, kind Kind, name string) (*Snapshot, error) {
	if now := s.Snapshot(); now.has(kind, name) {
		return now, nil
	}
	if err := s.turns.share(ctx, s.readEntries); err != nil {
		return nil, fmt.Errorf("look up %s: %w", title(kind, name), err)
	}
	return s.Snapshot(), nil
}

// Run follows the directory and the bucket until ctx is done, and returns
// once everything it started has ended; files that it has put beside entries
// of the bucket are then gone. It is called once, and ends after the last
// execution.
func (s *Source) Run(ctx context.Context) {
	if s.scratch != nil {
		defer s.scratch.close()
	}
	wake := make(chan struct{}, 1)
	var watching sync.WaitGroup
	defer watching.Wait()
	if s.switches != nil {
		watching.Go(func() { s.switches.bucket.watch(ctx, s.options.Interval, wake) })
	}
	for {
		s.refresh(ctx)
		select {
		case <-ctx.Done():
			return
		case <-wake:
		case <-time.After(max(s.options.Interval, time.Duration(s.restFor.Load()))):
		}
	}
}

// refresh reads what changed, entries and switches.
func (s *Source) refresh(ctx context.Context) {
	err := s.turns.pass(ctx, func(ctx context.Context) error {
		return errors.Join(s.readSwitches(ctx), s.readEntries(ctx))
	})
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	first := err != nil && (s.err == nil || s.err.Error() != err.Error())
	s.err = err
	s.mu.Unlock()
	switch {
	case first:
		s.log.ErrorContext(ctx, "catalogue cannot be read, the last state stays in force", "error", err)
	case err == nil:
		s.setReady()
	}
}

func (s *Source) setReady() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isReady {
		s.isReady = true
		close(s.ready)
	}
}

// readEntries runs in turn with itself and with readSwitches.
func (s *Source) readEntries(ctx context.Context) error {
	began := time.Now()
	next, faults, err := s.entries.refresh(ctx, s.base)
	if s.options.Dir != "" && next == nil {
		s.restFor.Store(restShare * int64(time.Since(began)))
	}
	if err != nil || next == nil {
		return err
	}
	s.mu.Lock()
	news := faults.Error() != s.faults.Error()
	s.faults = faults
	s.mu.Unlock()
	if news {
		for _, f := range faults {
			s.log.ErrorContext(ctx, "catalogue entry refused, the last good one stays", "place", f.Place.String(), "entry", f.Entry, "reason", f.Reason)
		}
	}
	same := next.revision == s.base.revision
	s.base = next
	if same {
		return nil
	}
	s.log.InfoContext(ctx, "catalogue loaded", "revision", next.revision, "tools", len(next.tools), "projects", len(next.projects), "refused", len(faults))
	s.publish()
	return nil
}

func (s *Source) readSwitches(ctx context.Context) error {
	if s.switches == nil {
		return nil
	}
	held, changed, err := s.switches.refresh(ctx)
	if err != nil || !changed {
		return err
	}
	s.log.InfoContext(ctx, "switches changed", "paused", len(held))
	s.held = held
	s.publish()
	return nil
}

// publish hands out a new snapshot.
func (s *Source) publish() {
	next := s.base.With(s.options.Projects...)
	next.switches = s.held
	s.current.Store(next)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.onChange)
	s.onChange = make(chan struct{})
}
