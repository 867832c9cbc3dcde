package warm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fakeSlot counts who uses it.
type fakeSlot struct {
	factory *factory
	kind    string
	id      int64
	users   atomic.Int32
	closed  atomic.Bool
}

func (s *fakeSlot) Close() error {
	if s.closed.Swap(true) {
		panic("closed twice")
	}
	if s.users.Load() != 0 {
		panic("closed while used")
	}
	s.factory.open.Add(-1)
	return nil
}

// factory starts slots after a delay, unless it is broken.
type factory struct {
	delay   time.Duration
	broken  atomic.Bool
	open    atomic.Int32
	started atomic.Int64
	tried   atomic.Int64
}

func (f *factory) start(kind string) func(ctx context.Context) (*fakeSlot, error) {
	return func(ctx context.Context) (*fakeSlot, error) {
		f.tried.Add(1)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(f.delay):
		}
		if f.broken.Load() {
			return nil, errors.New("no room")
		}
		f.open.Add(1)
		return &fakeSlot{factory: f, kind: kind, id: f.started.Add(1)}, nil
	}
}

// use leases a slot for d; it tells whether there was one.
func use(p *Pool[*fakeSlot], f *factory, kind string, d time.Duration, o Outcome) bool {
	l := p.Acquire(context.Background(), kind, f.start(kind))
	defer l.Release(o)
	s, ok := l.Slot()
	if ok {
		if s.users.Add(1) != 1 || s.closed.Load() || s.kind != kind {
			panic("slot is shared, closed or of another kind")
		}
		defer s.users.Add(-1)
	}
	time.Sleep(d)
	return ok
}

// bubble runs a test with a pool in time of its own.
func bubble(t *testing.T, c Config, test func(t *testing.T, p *Pool[*fakeSlot], f *factory)) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{delay: 100 * time.Millisecond}
		p := NewPool[*fakeSlot](c)
		test(t, p, f)
		p.Close()
		if n := f.open.Load(); n != 0 {
			t.Errorf("%d slots are open after Close", n)
		}
		if _, all := p.Idle(); all != 0 {
			t.Errorf("%d slots are counted after Close", all)
		}
	})
}

func TestColdThenWarm(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		if use(p, f, "a", 0, Fine) {
			t.Error("the first execution found a slot")
		}
		time.Sleep(time.Second)
		for range 10 {
			if !use(p, f, "a", 0, Fine) {
				t.Error("a later execution found none")
			}
		}
		if use(p, f, "b", 0, Fine) {
			t.Error("another kind got a slot of the first")
		}
		if n := f.started.Load(); n != 1 {
			t.Errorf("%d slots were started for one execution at a time", n)
		}
	})
}

func TestFollowsDemand(t *testing.T) {
	bubble(t, Config{MaxPerKind: 6, Idle: time.Minute}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		burst := func(n int) (warm int) {
			var got atomic.Int32
			var wg sync.WaitGroup
			for range n {
				wg.Go(func() {
					if use(p, f, "a", time.Second, Fine) {
						got.Add(1)
					}
				})
			}
			wg.Wait()
			return int(got.Load())
		}
		burst(4)
		time.Sleep(time.Second)
		if n := burst(4); n != 4 {
			t.Errorf("%d of 4 executions were warm", n)
		}
		burst(20)
		time.Sleep(time.Second)
		if n := burst(20); n != 6 {
			t.Errorf("%d of 20 executions were warm, want the bound of a kind", n)
		}
		// One at a time keeps one; the others go.
		for range 12 {
			use(p, f, "a", 0, Fine)
			time.Sleep(15 * time.Second)
		}
		if _, all := p.Idle(); all != 1 {
			t.Errorf("%d slots are left for one execution at a time", all)
		}
		time.Sleep(3 * time.Minute)
		if _, all := p.Idle(); all != 0 || len(p.kinds) != 0 {
			t.Errorf("%d slots, %d kinds are left for nobody", all, len(p.kinds))
		}
	})
}

func TestPatience(t *testing.T) {
	bubble(t, Config{MaxPerKind: 1, Patience: 10 * time.Millisecond}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		use(p, f, "a", 0, Fine)
		time.Sleep(time.Second)
		var wg sync.WaitGroup
		for _, c := range []struct {
			busy time.Duration
			warm bool
		}{{5 * time.Millisecond, true}, {20 * time.Millisecond, false}} {
			wg.Go(func() { use(p, f, "a", c.busy, Fine) })
			synctest.Wait()
			start := time.Now()
			if got := use(p, f, "a", 0, Fine); got != c.warm {
				t.Errorf("busy for %v: warm %v", c.busy, got)
			}
			if waited := time.Since(start); waited > 10*time.Millisecond {
				t.Errorf("busy for %v: waited %v", c.busy, waited)
			}
			wg.Wait()
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		wg.Go(func() { use(p, f, "a", time.Second, Fine) })
		synctest.Wait()
		l := p.Acquire(ctx, "a", f.start("a"))
		if _, ok := l.Slot(); ok {
			t.Error("two executions share a slot")
		}
		l.Release(Fine)
		wg.Wait()
	})
}

func TestReplacedByUseAndAge(t *testing.T) {
	bubble(t, Config{MaxUses: 5, MaxAge: time.Minute, Idle: time.Hour}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		use(p, f, "a", 0, Fine)
		for range 10 {
			time.Sleep(time.Second)
			if !use(p, f, "a", 0, Fine) {
				t.Error("no slot was ready")
			}
		}
		time.Sleep(time.Second)
		if n := f.started.Load(); n != 3 {
			t.Errorf("%d slots were started, want 3 after 10 uses of 5", n)
		}
		time.Sleep(2 * time.Minute)
		if use(p, f, "a", 0, Fine) {
			t.Error("a slot was used beyond its age")
		}
	})
}

// Whoever comes all the time never finds the slot gone and its successor missing.
func TestSuccessorIsStartedAhead(t *testing.T) {
	bubble(t, Config{MaxUses: 16, MaxAge: time.Hour}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		use(p, f, "a", 0, Fine)
		time.Sleep(time.Second)
		for i := range 100 {
			if !use(p, f, "a", 80*time.Millisecond, Fine) {
				t.Errorf("execution %d found no slot", i)
			}
		}
		if n := f.started.Load(); n < 6 || n > 9 {
			t.Errorf("%d slots were started for 100 uses, 16 each", n)
		}
	})
}

func TestUsedOnce(t *testing.T) {
	bubble(t, Config{MaxUses: 1}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		use(p, f, "a", 0, Spent)
		for range 5 {
			time.Sleep(time.Second)
			if !use(p, f, "a", 0, Spent) {
				t.Error("no slot was ready")
			}
		}
		if n := f.started.Load(); n != 5 {
			t.Errorf("%d slots were started for 5 uses", n)
		}
	})
}

// A kind that does not start is not tried for ever, and gets well again.
func TestBroken(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		f.broken.Store(true)
		for range 600 { // ten minutes
			if use(p, f, "a", 0, Fine) {
				t.Error("a slot that did not start was used")
			}
			time.Sleep(time.Second)
		}
		if n := f.tried.Load(); n < 5 || n > 12 {
			t.Errorf("%d starts were tried in ten minutes", n)
		}
		f.broken.Store(false)
		time.Sleep(5 * time.Minute)
		use(p, f, "a", 0, Fine)
		time.Sleep(time.Second)
		if !use(p, f, "a", 0, Broken) { // starts, but fails when used
			t.Error("the kind did not get well")
		}
		tried := f.tried.Load()
		for range 10 {
			use(p, f, "a", 0, Fine)
		}
		if f.tried.Load() != tried {
			t.Error("a slot that failed was replaced at once")
		}
	})
}

func TestPrepare(t *testing.T) {
	bubble(t, Config{MaxSlots: 1, Idle: time.Hour}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		ctx := context.Background()
		if err := p.Prepare(ctx, "a", f.start("a")); err != nil || p.Ready("a") != 1 {
			t.Errorf("%v, %d ready", err, p.Ready("a"))
		}
		if err := p.Prepare(ctx, "a", f.start("a")); err != nil || f.started.Load() != 1 {
			t.Errorf("%v, %d started", err, f.started.Load())
		}
		l := p.Acquire(ctx, "a", f.start("a"))
		if err := p.Prepare(ctx, "b", f.start("b")); !errors.Is(err, errNoRoom) {
			t.Errorf("without room: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := p.Prepare(short, "a", f.start("a")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the only slot is busy: %v", err)
		}
		l.Release(Spent)
		f.broken.Store(true)
		if err := p.Prepare(ctx, "c", f.start("c")); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("broken: %v", err)
		}
		p.Close()
		if err := p.Prepare(ctx, "d", f.start("d")); err == nil {
			t.Error("a closed pool prepared something")
		}
	})
}

func TestBoundOfAll(t *testing.T) {
	memory := atomic.Bool{}
	memory.Store(true)
	bubble(t, Config{MaxSlots: 3, Idle: time.Hour, MayGrow: memory.Load}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		for i := range 10 {
			kind := fmt.Sprint(i)
			use(p, f, kind, 0, Fine)
			time.Sleep(time.Second)
			if !use(p, f, kind, 0, Fine) {
				t.Errorf("kind %s found no slot: the one used least lately should have gone", kind)
			}
			if _, all := p.Idle(); all > 3 {
				t.Errorf("%d slots, want at most 3", all)
			}
		}
		memory.Store(false)
		time.Sleep(time.Hour)
		if _, all := p.Idle(); all != 0 {
			t.Errorf("%d slots are left where memory is short", all)
		}
		tried := f.tried.Load()
		use(p, f, "new", 0, Fine)
		if f.tried.Load() != tried {
			t.Error("a slot was started where memory is short")
		}
	})
}

func TestCloseWhileStarting(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		f.delay = time.Hour
		l := p.Acquire(context.Background(), "a", f.start("a"))
		p.Close()
		l.Release(Fine)
		if use(p, f, "a", 0, Fine) {
			t.Error("a closed pool gave a slot")
		}
	})
}

func TestReleaseAfterClose(t *testing.T) {
	bubble(t, Config{}, func(t *testing.T, p *Pool[*fakeSlot], f *factory) {
		use(p, f, "a", 0, Fine)
		time.Sleep(time.Second)
		l := p.Acquire(context.Background(), "a", f.start("a"))
		if _, ok := l.Slot(); !ok {
			t.Fatal("no slot")
		}
		p.Close()
		l.Release(Fine)
		synctest.Wait()
	})
}

// Whatever happens in whatever order, no slot is shared, lost or kept.
func TestPoolKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		c := Config{
			MaxSlots: rapid.IntRange(1, 5).Draw(r, "slots"), MaxPerKind: rapid.IntRange(1, 4).Draw(r, "per kind"),
			MaxUses: rapid.IntRange(1, 4).Draw(r, "uses"), MaxAge: time.Minute, Idle: 20 * time.Second,
		}
		type action struct {
			kind    string
			after   time.Duration
			last    time.Duration
			outcome Outcome
		}
		actions := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) action {
			return action{
				rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "kind"),
				time.Duration(rapid.IntRange(0, 5000).Draw(r, "after")) * time.Millisecond,
				time.Duration(rapid.IntRange(0, 500).Draw(r, "last")) * time.Millisecond,
				rapid.SampledFrom([]Outcome{Fine, Fine, Fine, Spent, Broken}).Draw(r, "outcome"),
			}
		}), 1, 30).Draw(r, "actions")
		var open int32
		synctest.Test(t, func(*testing.T) {
			f := &factory{delay: 50 * time.Millisecond}
			p := NewPool[*fakeSlot](c)
			var wg sync.WaitGroup
			for _, a := range actions {
				time.Sleep(a.after)
				wg.Go(func() { use(p, f, a.kind, a.last, a.outcome) })
				if _, all := p.Idle(); all > c.MaxSlots {
					panic(fmt.Sprintf("%d slots, want at most %d", all, c.MaxSlots))
				}
			}
			wg.Wait()
			p.Close()
			open = f.open.Load()
		})
		if open != 0 {
			r.Fatalf("%d slots are open after Close", open)
		}
	})
}
