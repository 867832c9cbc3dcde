package consume

import "github.com/toolworker/toolworker/internal/tool"

// weights of the priorities while all of them have work, in the order of
// tool.Priorities.
var weights = [len(tool.Priorities)]int{16, 4, 1}

// scheduler decides which lane may use a free slot. It is a plain data
// structure: it takes no locks, starts nothing and reads no clock.
//
// A slot belongs to a lane from the moment it is reserved for a fetch until
// the fetch ends without a message for it, or the message is settled.
type scheduler struct {
	free  int
	bound func(project string) int // most slots of a project; 0: all
	held  func(Lane) bool          // paused: not served now

	lanes    map[Lane]*lane
	rings    [len(tool.Priorities)]ring // lanes that are ready or have waiters
	credit   [len(tool.Priorities)]int
	projects map[string]int // slots in use
	stopped  bool
}

// lane is the state of a Lane that has work or slots.
type lane struct {
	Lane
	next, prev *lane // in the ring of its priority; nil outside

	ready  bool
	marks  uint64 // counts what made it ready, so that a mark during a fetch is not lost
	woken  bool   // one of them was a wake-up, which can be ahead of its message
	proven bool   // its last fetch succeeded

	fetching bool
	claimed  int // slots reserved for the fetch after the one in flight
	used     int // slots: reserved, claimed and running
	waiting  []*ticket
}

// ticket is a received message that waits for a slot to go on in.
type ticket struct {
	lane    Lane
	granted chan struct{} // closed when the slot is there
}

// fetch is a grant: ask for n messages of the lane in n reserved slots.
type fetch struct {
	lane  *lane
	n     int
	look  bool   // wait a moment for the message of a wake-up
	marks uint64 // of the lane when the grant was made
}

func newScheduler(slots int, bound func(string) int, held func(Lane) bool) *scheduler {
	return &scheduler{
		free: slots, bound: bound, held: held,
		lanes: map[Lane]*lane{}, projects: map[string]int{},
	}
}

// mark notes that a lane has or may have messages. woken: they were announced
// just now; else they were seen in the queue. Lanes without a priority that
// exists are ignored.
func (s *scheduler) mark(key Lane, woken bool) {
	l := s.lane(key)
	if l == nil {
		return
	}
	l.marks++
	l.woken = l.woken || woken
	l.ready = true
	s.enter(l)
}

// wait queues a received message for a slot of its lane.
func (s *scheduler) wait(t *ticket) {
	l := s.lane(t.lane)
	l.waiting = append(l.waiting, t)
	s.enter(l)
}

// withdraw takes a ticket back and reports whether it was still waiting;
// otherwise its slot is granted and has to be released.
func (s *scheduler) withdraw(t *ticket) bool {
	l := s.lanes[t.lane]
	if l == nil {
		return false
	}
	for i, w := range l.waiting {
		if w == t {
			l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
			s.leave(l)
			return true
		}
	}
	return false
}

// release returns the slot of one message.
func (s *scheduler) release(key Lane) {
	l := s.lanes[key]
	s.giveUp(l, 1)
	s.leave(l)
}

// stop ends all grants: what is running may go on.
func (s *scheduler) stop() { s.stopped = true }

// grants hands out the free slots, one by one in their fair order, and
// returns the fetches to make. Tickets are granted at once.
func (s *scheduler) grants() []fetch {
	if s.free == 0 || s.stopped {
		return nil
	}
	var fetches []fetch
	for s.free > 0 {
		l := s.pick()
		if l == nil {
			break
		}
		s.take(l)
		switch {
		case len(l.waiting) > 0:
			close(l.waiting[0].granted)
			l.waiting[0] = nil
			l.waiting = l.waiting[1:]
			s.leave(l)
		case l.fetching:
			l.claimed++
		default:
			l.fetching = true
			fetches = append(fetches, fetch{lane: l, n: 1, marks: l.marks})
		}
	}
	// What was claimed for a lane in this round belongs to its fetch.
	for i := range fetches {
		l := fetches[i].lane
		fetches[i].n += l.claimed
		l.claimed = 0
	}
	return fetches
}

// done takes the end of a fetch: got messages, each of which keeps its slot,
// or an error. It returns the lane's next fetch, when one is to follow at once.
func (s *scheduler) done(f fetch, got int, err error) (fetch, bool) {
	l := f.lane
	l.fetching, l.proven = false, err == nil
	s.giveUp(l, f.n-got)
	if s.stopped {
		s.giveUp(l, l.claimed)
		l.claimed = 0
		s.drop(l)
		return fetch{}, false
	}
	if got == f.n && l.claimed > 0 {
		next := fetch{lane: l, n: l.claimed, marks: l.marks}
		l.claimed, l.fetching = 0, true
		return next, true
	}
	s.giveUp(l, l.claimed)
	l.claimed = 0
	switch {
	case err != nil:
		s.drop(l) // the next sweep tries again
	case got > 0 || l.marks != f.marks:
	case !l.woken || f.look:
		s.drop(l)
	case s.othersCan(l):
		l.woken = false // a second chance in its next turn is as good as a look
	default:
		l.woken, l.fetching = false, true
		s.take(l)
		return fetch{lane: l, n: 1, look: true, marks: l.marks}, true
	}
	s.leave(l)
	return fetch{}, false
}

// pick chooses the lane of one slot: the priority by smooth weighted round
// robin among those that have work, then its lanes in turn.
func (s *scheduler) pick() *lane {
	var first [len(tool.Priorities)]*lane
	best, total := -1, 0
	for i := range s.rings {
		if first[i] = s.rings[i].first(s.eligible); first[i] == nil {
			continue
		}
		total += weights[i]
		s.credit[i] += weights[i]
		if best < 0 || s.credit[i] > s.credit[best] {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	s.credit[best] -= total
	s.rings[best].last = first[best]
	return first[best]
}

// eligible reports whether a lane can use one more slot now. While a fetch of
// it is in flight a slot is put aside for the next one, for the instant that
// a fetch takes: given to another lane it would turn the shares around.
func (s *scheduler) eligible(l *lane) bool {
	if b := s.bound(l.Project); b > 0 && s.projects[l.Project] >= b {
		return false
	}
	if s.held(l.Lane) {
		return false
	}
	return len(l.waiting) > 0 || l.ready && (!l.fetching || l.proven)
}

func (s *scheduler) lane(key Lane) *lane {
	l := s.lanes[key]
	if l == nil && key.rank() >= 0 {
		l = &lane{Lane: key}
		s.lanes[key] = l
	}
	return l
}

func (s *scheduler) take(l *lane) {
	s.free--
	l.used++
	s.projects[l.Project]++
}

func (s *scheduler) giveUp(l *lane, n int) {
	if n == 0 {
		return
	}
	s.free += n
	l.used -= n
	if s.projects[l.Project] -= n; s.projects[l.Project] == 0 {
		delete(s.projects, l.Project)
	}
}

// othersCan reports whether a lane beside l could use a slot now.
func (s *scheduler) othersCan(l *lane) bool {
	for i := range s.rings {
		if s.rings[i].first(func(o *lane) bool { return o != l && s.eligible(o) }) != nil {
			return true
		}
	}
	return false
}

// drop says that a lane has nothing, until it is marked again.
func (s *scheduler) drop(l *lane) {
	l.ready, l.woken = false, false
	s.leave(l)
}

func (s *scheduler) enter(l *lane) {
	if l.next == nil {
		s.rings[l.rank()].add(l)
	}
}

// leave takes a lane without work out of its ring, and forgets it once it has
// no slots either.
func (s *scheduler) leave(l *lane) {
	if l.ready || len(l.waiting) > 0 {
		return
	}
	if l.next != nil {
		s.rings[l.rank()].remove(l)
	}
	if l.used == 0 && !l.fetching {
		delete(s.lanes, l.Lane)
	}
}
