package policy

import (
	"math"

	"github.com/toolworker/toolworker/internal/tool"
)

// The built-in limits (protocol, section 2): what is in force where neither
// the request, the tool nor the project has a wish.
var (
	BuiltInCode = tool.Limits{
		TimeoutSeconds: 30,
		MaxOutputBytes: 1 << 20, // both streams together
		MemoryBytes:    512 << 20,
		CPUs:           1,
		PIDs:           128,
		FileSizeBytes:  1 << 30,
		OpenFiles:      256,
	}
	BuiltInCommand = tool.Limits{
		TimeoutSeconds: 120,
		MaxOutputBytes: 50 << 20, // per stream
		MemoryBytes:    512 << 20,
		CPUs:           1,
		PIDs:           128,
		FileSizeBytes:  1 << 30,
		OpenFiles:      256,
	}
)

// Seconds have the bounds of the schemas: beyond the longest, about 31 years,
// a duration would overflow, and below the shortest it would be zero, which
// means not limited.
const (
	longest  = 1e9
	shortest = 1e-9
)

// InForce returns the limits that an execution runs under: the request's wish,
// else the tool's, else the default of the project, else the built-in limit of
// its kind; then lowered to the project's maximum and the worker's. Clamped
// names what was lowered, in the order of the members. d is nil for inline
// code; a tool with code has the built-in limits of inline code.
//
// A wish that is not a number above zero is none. A limit that nobody has,
// such as cpu_seconds, stays 0: not limited.
func InForce(r *tool.Request, d *tool.Definition, p *tool.Project, worker tool.Limits) tool.LimitsInForce {
	builtIn, own := BuiltInCode, tool.Limits{}
	if d != nil {
		own = d.Limits
		if len(d.Command) > 0 {
			builtIn = BuiltInCommand
		}
	}
	// From the first to speak to the last.
	wishes := [...]tool.Limits{r.Limits, own, p.Defaults, builtIn}
	maxima := [...]tool.Limits{p.Maximum, worker}

	in := tool.LimitsInForce{Clamped: []string{}}
	for _, m := range members {
		var value float64
		for i := range wishes {
			if value = m.get(&wishes[i]); value > 0 {
				break
			}
		}
		clamped := false
		lower := func(most float64) {
			if most > 0 && (value == 0 || value > most) {
				value, clamped = most, true
			}
		}
		for i := range maxima {
			lower(m.get(&maxima[i]))
		}
		if m.seconds && value > longest {
			lower(longest)
		}
		m.set(&in.Limits, value)
		if clamped {
			in.Clamped = append(in.Clamped, m.name)
		}
	}
	return in
}

// member is one limit.
type member struct {
	name    string
	seconds bool
	get     func(*tool.Limits) float64
	set     func(*tool.Limits, float64)
}

// members are the limits in the order of the protocol. Their values fit a
// float64 exactly: whole numbers end at 2^53 in every schema, and larger ones
// are lowered to it.
var members = [...]member{
	fraction("timeout_seconds", true, func(l *tool.Limits) *float64 { return &l.TimeoutSeconds }),
	whole("max_output_bytes", func(l *tool.Limits) *int64 { return &l.MaxOutputBytes }),
	whole("memory_bytes", func(l *tool.Limits) *int64 { return &l.MemoryBytes }),
	fraction("cpus", false, func(l *tool.Limits) *float64 { return &l.CPUs }),
	fraction("cpu_seconds", true, func(l *tool.Limits) *float64 { return &l.CPUSeconds }),
	whole("pids", func(l *tool.Limits) *int64 { return &l.PIDs }),
	whole("file_size_bytes", func(l *tool.Limits) *int64 { return &l.FileSizeBytes }),
	whole("open_files", func(l *tool.Limits) *int64 { return &l.OpenFiles }),
}

func fraction(name string, seconds bool, of func(*tool.Limits) *float64) member {
	return member{name: name, seconds: seconds,
		get: func(l *tool.Limits) float64 {
			if v := *of(l); v > 0 && !math.IsInf(v, 1) { // NaN is not above zero either
				return max(v, shortest)
			}
			return 0
		},
		set: func(l *tool.Limits, v float64) { *of(l) = v },
	}
}

// largest is the largest whole number that a float64 counts up to exactly.
const largest = 1 << 53

func whole(name string, of func(*tool.Limits) *int64) member {
	return member{name: name,
		get: func(l *tool.Limits) float64 { return float64(min(max(*of(l), 0), largest)) },
		set: func(l *tool.Limits, v float64) { *of(l) = int64(v) },
	}
}
