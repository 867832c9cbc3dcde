package policy

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

var command = &tool.Definition{Name: "t", Command: []string{"t"}}

func TestInForce(t *testing.T) {
	with := func(base tool.Limits, change func(*tool.Limits)) tool.Limits {
		change(&base)
		return base
	}
	timeout := func(s float64) tool.Limits { return tool.Limits{TimeoutSeconds: s} }
	for _, tt := range []struct {
		name       string
		request    tool.Limits
		definition *tool.Definition // nil: inline code
		project    tool.Project
		worker     tool.Limits
		want       tool.Limits
		clamped    []string
	}{
		{name: "inline, nobody asks", want: BuiltInCode},
		{name: "command, nobody asks", definition: command, want: BuiltInCommand},
		{name: "a tool with code is as inline code", definition: &tool.Definition{Name: "t", Code: "x"}, want: BuiltInCode},
		{name: "project default before built-in", project: tool.Project{Defaults: timeout(5)},
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds = 5 })},
		{name: "tool before project default", definition: &tool.Definition{Command: []string{"t"}, Limits: timeout(7)}, project: tool.Project{Defaults: timeout(5)},
			want: with(BuiltInCommand, func(l *tool.Limits) { l.TimeoutSeconds = 7 })},
		{name: "request before tool", request: timeout(900), definition: &tool.Definition{Command: []string{"t"}, Limits: timeout(7)}, project: tool.Project{Defaults: timeout(5)},
			want: with(BuiltInCommand, func(l *tool.Limits) { l.TimeoutSeconds = 900 })},
		{name: "lowered to the project's maximum", request: timeout(900), project: tool.Project{Maximum: timeout(600)},
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds = 600 }), clamped: []string{"timeout_seconds"}},
		{name: "lowered to the worker's maximum", request: timeout(900), project: tool.Project{Maximum: timeout(600)}, worker: timeout(10),
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds = 10 }), clamped: []string{"timeout_seconds"}},
		{name: "below the maximum", request: timeout(0.5), project: tool.Project{Maximum: timeout(600)}, worker: timeout(10),
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds = 0.5 })},
		{name: "the built-in too", project: tool.Project{Maximum: timeout(10)},
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds = 10 }), clamped: []string{"timeout_seconds"}},
		{name: "a limit that nobody has", project: tool.Project{Maximum: tool.Limits{CPUSeconds: 3}},
			want: with(BuiltInCode, func(l *tool.Limits) { l.CPUSeconds = 3 }), clamped: []string{"cpu_seconds"}},
		{name: "no wishes", request: tool.Limits{TimeoutSeconds: math.NaN(), MemoryBytes: -1, CPUs: math.Inf(1), CPUSeconds: math.Inf(-1), PIDs: math.MinInt64},
			want: BuiltInCode},
		{name: "beyond all durations", request: tool.Limits{TimeoutSeconds: 1e300, MemoryBytes: math.MaxInt64},
			want: with(BuiltInCode, func(l *tool.Limits) { l.TimeoutSeconds, l.MemoryBytes = 1e9, 1<<53 }), clamped: []string{"timeout_seconds"}},
		{name: "every member",
			request: tool.Limits{TimeoutSeconds: 9, MaxOutputBytes: 9, MemoryBytes: 9, CPUs: 9, CPUSeconds: 9, PIDs: 9, FileSizeBytes: 9, OpenFiles: 9},
			project: tool.Project{Maximum: tool.Limits{TimeoutSeconds: 8, MaxOutputBytes: 8, MemoryBytes: 8, CPUs: 8, CPUSeconds: 8, PIDs: 8, FileSizeBytes: 8, OpenFiles: 8}},
			want:    tool.Limits{TimeoutSeconds: 8, MaxOutputBytes: 8, MemoryBytes: 8, CPUs: 8, CPUSeconds: 8, PIDs: 8, FileSizeBytes: 8, OpenFiles: 8},
			clamped: []string{"timeout_seconds", "max_output_bytes", "memory_bytes", "cpus", "cpu_seconds", "pids", "file_size_bytes", "open_files"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := InForce(&tool.Request{Limits: tt.request}, tt.definition, &tt.project, tt.worker)
			if diff := cmp.Diff(tt.want, got.Limits); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
			if !slices.Equal(got.Clamped, tt.clamped) {
				t.Errorf("clamped %v, want %v", got.Clamped, tt.clamped)
			}
			if got.Clamped == nil {
				t.Error("clamped is nil: it would be null in the result")
			}
			if got.Timeout() <= 0 {
				t.Errorf("timeout %v", got.Timeout())
			}
		})
	}
}

// The built-in limits are a contract with planners.
func TestBuiltIn(t *testing.T) {
	for _, tt := range []struct {
		limits  tool.Limits
		timeout float64
		output  int64
	}{{BuiltInCode, 30, 1_048_576}, {BuiltInCommand, 120, 52_428_800}} {
		want := tool.Limits{TimeoutSeconds: tt.timeout, MaxOutputBytes: tt.output, MemoryBytes: 536_870_912, CPUs: 1, PIDs: 128, FileSizeBytes: 1_073_741_824, OpenFiles: 256}
		if diff := cmp.Diff(want, tt.limits); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
