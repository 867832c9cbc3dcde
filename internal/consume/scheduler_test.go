package consume

import (
	"errors"
	"fmt"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func unbounded(string) int { return 0 }
func notHeld(Lane) bool    { return false }

func key(p tool.Priority, project string) Lane {
	return Lane{Pool: tool.DefaultPool, Priority: p, Project: project}
}

// backlog answers fetches from counters, as a server would.
type backlog map[Lane]int

// serve runs the scheduler until n messages were started, each settled at
// once and in the order of their start, and counts the starts per lane. slots
// of them run at once.
func (b backlog) serve(t *testing.T, s *scheduler, n int) map[Lane]int {
	t.Helper()
	started := map[Lane]int{}
	var running []Lane
	for total := 0; total < n; {
		fetches := s.grants()
		if len(fetches) == 0 && len(running) == 0 {
			t.Fatalf("nothing to do after %d of %d starts", total, n)
		}
		for len(fetches) > 0 {
			f := fetches[0]
			fetches = fetches[1:]
			got := min(f.n, b[f.lane.Lane])
			b[f.lane.Lane] -= got
			for range got {
				running = append(running, f.lane.Lane)
				started[f.lane.Lane]++
				total++
			}
			if next, more := s.done(f, got, nil); more {
				fetches = append(fetches, next)
			}
		}
		if len(running) > 0 {
			s.release(running[0])
			running = running[1:]
		}
	}
	return started
}

func TestSharesOfPriorities(t *testing.T) {
	s := newScheduler(4, unbounded, notHeld)
	b := backlog{}
	for _, p := range tool.Priorities {
		for i := range 3 {
			k := key(p, fmt.Sprint("p", i))
			b[k] = 5000
			s.mark(k, true)
		}
	}
	started := b.serve(t, s, 4200)
	sum := map[tool.Priority]int{}
	for k, n := range started {
		sum[k.Priority] += n
	}
	for p, want := range map[tool.Priority]int{tool.High: 3200, tool.Normal: 800, tool.Low: 200} {
		if got := sum[p]; got < want-20 || got > want+20 {
			t.Errorf("%s: %d of 4200 starts, expected about %d", p, got, want)
		}
	}
	for _, p := range tool.Priorities {
		for i := range 3 {
			if got, want := started[key(p, fmt.Sprint("p", i))], sum[p]/3; got < want-4 || got > want+4 {
				t.Errorf("%s p%d: %d starts, expected its third of %d", p, i, got, sum[p])
			}
		}
	}
}

func TestLowIsServedWhenAlone(t *testing.T) {
	s := newScheduler(4, unbounded, notHeld)
	k := key(tool.Low, "p")
	s.mark(k, true)
	b := backlog{k: 100}
	if got := b.serve(t, s, 100)[k]; got != 100 {
		t.Fatalf("%d starts", got)
	}
}

func TestNewProjectStartsWithTheNextSlot(t *testing.T) {
	for _, slots := range []int{1, 4, 64} {
		s := newScheduler(slots, unbounded, notHeld)
		a, b := key(tool.Normal, "a"), key(tool.Normal, "b")
		work := backlog{a: 100_000, b: 1}
		s.mark(a, true)
		work.serve(t, s, 5*slots)
		s.mark(b, true)
		started := work.serve(t, s, 2)
		if started[b] != 1 {
			t.Errorf("%d slots: the two next starts were %v, expected one of them to be b's", slots, started)
		}
	}
}

func TestNeverMoreThanTheSlots(t *testing.T) {
	s := newScheduler(4, unbounded, notHeld)
	for i := range 10 {
		s.mark(key(tool.Normal, fmt.Sprint(i)), true)
	}
	asked := 0
	for _, f := range s.grants() {
		asked += f.n
	}
	if asked != 4 || s.free != 0 {
		t.Fatalf("asked for %d messages with 4 slots, %d left", asked, s.free)
	}
	if more := s.grants(); more != nil {
		t.Fatalf("granted %v without a slot", more)
	}
}

func TestUnprovenLaneIsAskedForOne(t *testing.T) {
	s := newScheduler(8, unbounded, notHeld)
	k := key(tool.Normal, "p")
	s.mark(k, true)
	f := s.grants()
	if len(f) != 1 || f[0].n != 1 || s.free != 7 {
		t.Fatalf("grants %+v, free %d", f, s.free)
	}
	s.done(f[0], 1, nil)
	if f = s.grants(); len(f) != 1 || f[0].n != 7 {
		t.Fatalf("grants %+v, expected all free slots for the only lane", f)
	}
}

func TestSlotsFreedDuringAFetchFollowIt(t *testing.T) {
	s := newScheduler(2, unbounded, notHeld)
	k := key(tool.Normal, "p")
	s.mark(k, true)
	f := s.grants()[0]
	s.done(f, 1, nil) // proven, one runs
	f = s.grants()[0] // one more is asked for
	s.release(k)
	if got := s.grants(); got != nil {
		t.Fatalf("granted %v beside a fetch of the same lane", got)
	}
	next, more := s.done(f, 1, nil)
	if !more || next.n != 1 {
		t.Fatalf("next fetch %+v %v, expected one for the freed slot", next, more)
	}
}

func TestSlotsClaimedForAnEmptyLaneAreGivenUp(t *testing.T) {
	s := newScheduler(2, unbounded, notHeld)
	a, b := key(tool.Normal, "a"), key(tool.Normal, "b")
	s.mark(a, false)
	f := s.grants()[0]
	s.done(f, 1, nil)
	f = s.grants()[0]
	s.release(a)
	s.grants() // claims the slot for a
	s.mark(b, true)
	if _, more := s.done(f, 0, nil); more {
		t.Fatal("a fetch follows one that got nothing")
	}
	if g := s.grants(); len(g) != 1 || g[0].lane.Lane != b {
		t.Fatalf("grants %+v, expected b's", g)
	}
}

func TestWakeUpAheadOfItsMessageIsLookedForOnce(t *testing.T) {
	s := newScheduler(4, unbounded, notHeld)
	k := key(tool.Normal, "p")
	s.mark(k, true)
	look, more := s.done(s.grants()[0], 0, nil)
	if !more || !look.look || look.n != 1 || s.free != 3 {
		t.Fatalf("second look %+v %v with %d free, expected one slot to wait", look, more, s.free)
	}
	if _, more = s.done(look, 0, nil); more || s.free != 4 {
		t.Fatalf("a third look, or %d slots free", s.free)
	}
	if len(s.lanes) != 0 || s.grants() != nil {
		t.Fatal("an empty lane is not forgotten")
	}
}

func TestSweptLaneIsNotLookedForTwice(t *testing.T) {
	s := newScheduler(4, unbounded, notHeld)
	s.mark(key(tool.Normal, "p"), false)
	if _, more := s.done(s.grants()[0], 0, nil); more || len(s.lanes) != 0 {
		t.Fatal("a lane whose messages are all handed out keeps a slot waiting")
	}
}

func TestLookGivesWayToOtherWork(t *testing.T) {
	s := newScheduler(1, unbounded, notHeld)
	a, b := key(tool.Normal, "a"), key(tool.Normal, "b")
	s.mark(a, true)
	f := s.grants()[0]
	s.mark(b, true)
	if _, more := s.done(f, 0, nil); more {
		t.Fatal("the only slot waits for a while b has work")
	}
	if f = s.grants()[0]; f.lane.Lane != b {
		t.Fatalf("%v is served, expected b", f.lane.Lane)
	}
	s.done(f, 1, nil)
	s.release(b)
	if f = s.grants()[0]; f.lane.Lane != a {
		t.Fatalf("%v is served, expected a's second chance", f.lane.Lane)
	}
}

func TestMarkDuringAFetchIsNotLost(t *testing.T) {
	for _, woken := range []bool{true, false} {
		s := newScheduler(1, unbounded, notHeld)
		k := key(tool.Normal, "p")
		s.mark(k, false)
		f := s.grants()[0]
		s.mark(k, woken)
		s.done(f, 0, nil)
		if g := s.grants(); len(g) != 1 {
			t.Errorf("woken %v: the lane was dropped with news that its fetch cannot have seen", woken)
		}
	}
}

func TestFailedFetchWaitsForTheNextSweep(t *testing.T) {
	s := newScheduler(2, unbounded, notHeld)
	k := key(tool.Normal, "p")
	s.mark(k, true)
	f := s.grants()[0]
	s.mark(k, true)
	if _, more := s.done(f, 0, errors.New("no server")); more || s.free != 2 || s.grants() != nil {
		t.Fatal("a lane that fails is asked again at once")
	}
	s.mark(k, false)
	if g := s.grants(); len(g) != 1 || g[0].n != 1 {
		t.Fatalf("grants %+v after a sweep", g)
	}
}

func TestProjectBoundCountsAllItsLanes(t *testing.T) {
	s := newScheduler(10, func(p string) int { return map[string]int{"a": 3}[p] }, notHeld)
	work := backlog{key(tool.High, "a"): 9, key(tool.Low, "a"): 9, key(tool.Normal, "b"): 9}
	for k := range work {
		s.mark(k, true)
	}
	for range 4 {
		for _, f := range s.grants() {
			got := min(f.n, work[f.lane.Lane])
			work[f.lane.Lane] -= got
			s.done(f, got, nil)
		}
	}
	if s.projects["a"] != 3 || s.projects["b"] != 7 {
		t.Fatalf("slots in use: %v, expected 3 of a and the rest for b", s.projects)
	}
}

func TestHeldLaneWaits(t *testing.T) {
	held := true
	s := newScheduler(4, unbounded, func(Lane) bool { return held })
	s.mark(key(tool.Normal, "p"), true)
	if s.grants() != nil {
		t.Fatal("a paused lane is served")
	}
	held = false
	if len(s.grants()) != 1 {
		t.Fatal("a resumed lane is not served")
	}
}

func TestTicketIsGrantedInItsLanesTurn(t *testing.T) {
	s := newScheduler(1, unbounded, notHeld)
	a, b := key(tool.Normal, "a"), key(tool.Normal, "b")
	s.mark(b, true)
	f := s.grants()[0]
	s.done(f, 1, nil)
	first := &ticket{lane: a, granted: make(chan struct{})}
	second := &ticket{lane: a, granted: make(chan struct{})}
	s.wait(first)
	s.wait(second)
	s.release(b)
	if g := s.grants(); len(g) != 0 || !isClosed(first.granted) || isClosed(second.granted) {
		t.Fatalf("grants %+v, first %v, second %v", g, isClosed(first.granted), isClosed(second.granted))
	}
	if s.withdraw(first) {
		t.Fatal("a granted ticket was withdrawn")
	}
	s.release(a)
	if g := s.grants(); len(g) != 1 || g[0].lane.Lane != b {
		t.Fatalf("grants %+v, expected b's turn before the second ticket", g)
	}
	if !s.withdraw(second) || s.withdraw(second) {
		t.Fatal("a waiting ticket can be withdrawn once")
	}
}

func TestStoppedSchedulerGrantsNothing(t *testing.T) {
	s := newScheduler(2, unbounded, notHeld)
	k := key(tool.Normal, "p")
	s.mark(k, true)
	f := s.grants()[0]
	s.stop()
	s.mark(k, true)
	if _, more := s.done(f, 0, nil); more || s.grants() != nil {
		t.Fatal("something is fetched after the end of fetching")
	}
	if s.free != 2 || len(s.lanes) != 0 {
		t.Fatalf("free %d, lanes %d: expected all slots back", s.free, len(s.lanes))
	}
}

func TestUnknownPriorityIsIgnored(t *testing.T) {
	s := newScheduler(1, unbounded, notHeld)
	s.mark(key("urgent", "p"), true)
	if s.grants() != nil || len(s.lanes) != 0 {
		t.Fatal("a priority that does not exist is served")
	}
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
