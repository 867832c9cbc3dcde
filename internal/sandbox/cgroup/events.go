package cgroup

import (
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Events counts what a group ran into, again and again: it keeps the files
// open that Stats opens each time.
type Events struct {
	oom, pids *os.File // nil where nothing is counted
	buf       [512]byte
}

// Events opens the group's counters. The caller closes them.
func (g *Group) Events() *Events {
	e := &Events{}
	open := func(p groupPart, controller, file string, to **os.File) {
		if !slices.Contains(p.part.controllers, controller) {
			return
		}
		if f, err := os.Open(filepath.Join(p.dir, file)); err == nil {
			*to = f
		}
	}
	for _, p := range g.parts {
		open(p, PIDs, "pids.events", &e.pids)
		if p.v2 {
			open(p, Memory, "memory.events", &e.oom)
		} else {
			open(p, Memory, "memory.oom_control", &e.oom)
		}
	}
	return e
}

// Stats are the members OOMKills and PIDsHits, the others are zero.
func (e *Events) Stats() Stats {
	return Stats{OOMKills: e.count(e.oom, "oom_kill"), PIDsHits: e.count(e.pids, "max")}
}

func (e *Events) count(f *os.File, name string) int64 {
	if f == nil {
		return 0
	}
	n, err := f.ReadAt(e.buf[:], 0)
	if err != nil && err != io.EOF {
		return 0
	}
	return field(string(e.buf[:n]), name)
}

// Close closes the counters.
func (e *Events) Close() {
	for _, f := range []*os.File{e.oom, e.pids} {
		if f != nil {
			_ = f.Close()
		}
	}
}
