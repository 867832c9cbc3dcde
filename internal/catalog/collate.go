package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
)

// ref names an entry.
type ref struct {
	kind Kind
	name string
}

// collation puts the entries of many places together: the good ones go in,
// and where one is bad the last good one of that name stays.
type collation struct {
	good   map[ref]*entry
	bad    map[ref]bool
	opaque map[string]bool // files with something whose name could not be read
	faults Faults
}

func newCollation() *collation {
	return &collation{good: map[ref]*entry{}, bad: map[ref]bool{}, opaque: map[string]bool{}}
}

// add takes a good entry. Of two with one name both are refused: which of
// them the operator meant cannot be known.
func (c *collation) add(e *entry) {
	r := ref{e.kind, e.name}
	first, taken := c.good[r]
	if !taken {
		c.good[r] = e
		return
	}
	c.bad[r] = true
	c.faults = append(c.faults, Fault{Place: e.place, Entry: title(e.kind, e.name),
		Reason: fmt.Sprintf("defined twice: at %s and at %s", first.place, e.place)})
}

// refuse takes a bad entry; kind and name are "" when they could not be read.
func (c *collation) refuse(file string, kind Kind, name string, faults ...Fault) {
	if name == "" {
		c.opaque[file] = true
	} else {
		c.bad[ref{kind, name}] = true
	}
	c.faults = append(c.faults, faults...)
}

// snapshot is the catalogue that results, with the last good entries of prev
// where something was refused. Of a file with something unreadable every
// entry stays that is not found elsewhere.
func (c *collation) snapshot(prev *Snapshot) *Snapshot {
	next := newSnapshot()
	for r, e := range c.good {
		if !c.bad[r] {
			next.put(e)
		}
	}
	for _, entries := range []map[string]*entry{prev.tools, prev.projects} {
		for _, e := range entries {
			r := ref{e.kind, e.name}
			_, found := c.good[r]
			if c.bad[r] || c.opaque[e.place.File] && !found {
				next.put(e)
			}
		}
	}
	next.revision = digest(next)
	c.faults.sort()
	return next
}

// digest names a state of the entries: equal states have equal digests.
func digest(s *Snapshot) string {
	if len(s.tools)+len(s.projects) == 0 {
		return ""
	}
	h := sha256.New()
	for _, entries := range []map[string]*entry{s.tools, s.projects} {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			e := entries[name]
			h.Write(fmt.Appendf(nil, "%s %s\n", e.kind, e.name))
			if e.tool != nil {
				h.Write(fmt.Appendf(nil, "%q\n", e.tool.Dir))
			}
			h.Write(e.json)
			h.Write([]byte{'\n'})
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
