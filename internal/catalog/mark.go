package catalog

// mark remembers up to where the bucket was read. The position comes from the
// leader, what is then read may come from a replica that lags behind it: only
// a position that was read twice is done with.
type mark struct {
	at    position
	reads int
}

func (m *mark) current(at position) bool { return m.at == at && m.reads >= 2 }

func (m *mark) set(at position) {
	if m.at != at {
		m.at, m.reads = at, 0
	}
	m.reads++
}
