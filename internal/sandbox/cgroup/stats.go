package cgroup

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stats is what a group used and ran into. Zero members were not measured.
type Stats struct {
	CPU        time.Duration
	MemoryPeak int64 // bytes
	PIDsPeak   int64
	OOMKills   int64 // processes that the kernel ended for the memory limit
	PIDsHits   int64 // processes and threads refused for the pids limit
}

// Stats reads the group's counters. They survive its processes.
func (g *Group) Stats() Stats {
	var s Stats
	for _, p := range g.parts {
		p.read(&s)
	}
	return s
}

// CPU is the time used so far, 0 when it is not measured.
func (g *Group) CPU() time.Duration { return g.Stats().CPU }

func (p *groupPart) read(s *Stats) {
	number := func(file string) int64 {
		n, _ := strconv.ParseInt(strings.TrimSpace(read(filepath.Join(p.dir, file))), 10, 64)
		return n
	}
	has := func(c string) bool { return slices.Contains(p.part.controllers, c) }
	if has(PIDs) {
		s.PIDsPeak = number("pids.peak")
		s.PIDsHits = field(read(filepath.Join(p.dir, "pids.events")), "max")
	}
	switch {
	case p.v2:
		s.CPU = max(s.CPU, time.Duration(field(read(filepath.Join(p.dir, "cpu.stat")), "usage_usec"))*time.Microsecond)
		if has(Memory) {
			s.MemoryPeak = number("memory.peak")
			s.OOMKills = field(read(filepath.Join(p.dir, "memory.events")), "oom_kill")
		}
	default:
		if has(CPUAcct) {
			s.CPU = max(s.CPU, time.Duration(number("cpuacct.usage")))
		}
		if has(Memory) {
			s.MemoryPeak = number("memory.max_usage_in_bytes")
			s.OOMKills = field(read(filepath.Join(p.dir, "memory.oom_control")), "oom_kill")
		}
	}
}

// field gives the number behind a name in a file of "name number" lines.
func field(text, name string) int64 {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == name {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
