package consume

// ring is a circle of lanes that take turns. The zero value is empty.
type ring struct {
	last *lane // whose turn it was last; its successor is next
	size int
}

// add lets l have its turn before the lane that was served last gets another
// one, but after all that wait already.
func (r *ring) add(l *lane) {
	r.size++
	if r.last == nil {
		r.last, l.next, l.prev = l, l, l
		return
	}
	l.next, l.prev = r.last, r.last.prev
	l.prev.next, l.next.prev = l, l
}

func (r *ring) remove(l *lane) {
	r.size--
	if r.size == 0 {
		r.last = nil
	} else {
		l.prev.next, l.next.prev = l.next, l.prev
		if r.last == l {
			r.last = l.prev
		}
	}
	l.next, l.prev = nil, nil
}

// first is the next lane in turn that may be served, nil when there is none.
// Nobody's turn is used up by asking.
func (r *ring) first(may func(*lane) bool) *lane {
	if r.last == nil {
		return nil
	}
	for l := r.last.next; ; l = l.next {
		if may(l) {
			return l
		}
		if l == r.last {
			return nil
		}
	}
}
