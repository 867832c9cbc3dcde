package policy

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/tool"
)

// Generators of whatever a planner or an operator could write, and more than
// the schemas let through.

var (
	anyFloat = rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1000), rapid.SampledFrom([]float64{0, -1, 1e-9, 1e9, 1e300, math.NaN(), math.Inf(1), math.Inf(-1)}))
	anyInt   = rapid.OneOf(rapid.Int64(), rapid.Int64Range(0, 1000), rapid.SampledFrom([]int64{0, -1, 1 << 53, math.MaxInt64, math.MinInt64}))
	anyName  = rapid.SampledFrom([]string{"a", "b", "c", "*", ""})
	anyEnv   = rapid.SampledFrom([]tool.Environment{tool.Host, tool.Container})
	anyLevel = rapid.SampledFrom([]tool.Isolation{"", tool.IsolationNone, tool.IsolationReduced, tool.IsolationFull})

	anyLimits = rapid.Custom(func(t *rapid.T) tool.Limits {
		return tool.Limits{
			TimeoutSeconds: anyFloat.Draw(t, "timeout_seconds"), MaxOutputBytes: anyInt.Draw(t, "max_output_bytes"),
			MemoryBytes: anyInt.Draw(t, "memory_bytes"), CPUs: anyFloat.Draw(t, "cpus"), CPUSeconds: anyFloat.Draw(t, "cpu_seconds"),
			PIDs: anyInt.Draw(t, "pids"), FileSizeBytes: anyInt.Draw(t, "file_size_bytes"), OpenFiles: anyInt.Draw(t, "open_files"),
		}
	})
	anyCapability = rapid.Custom(func(t *rapid.T) tool.Capability {
		return tool.Capability{Writes: rapid.Bool().Draw(t, "writes"), Network: rapid.Bool().Draw(t, "network")}
	})
	anyRequest = rapid.Custom(func(t *rapid.T) *tool.Request {
		r := &tool.Request{
			Pool: anyName.Draw(t, "pool"), Limits: anyLimits.Draw(t, "limits"), ToolEnv: anyEnv.Draw(t, "tool_env"),
			Plan:    tool.Plan{ExecutionEnvironment: anyEnv.Draw(t, "plan"), ReadOnly: rapid.Bool().Draw(t, "read_only")},
			Outputs: rapid.SliceOf(rapid.String()).Draw(t, "outputs"),
		}
		if rapid.Bool().Draw(t, "is inline") {
			r.Inline = &tool.Inline{Name: anyName.Draw(t, "inline name"), Code: "1", Capability: anyCapability.Draw(t, "capability")}
		}
		return r
	})
	anyDefinition = rapid.Custom(func(t *rapid.T) *tool.Definition {
		d := &tool.Definition{
			Name: anyName.Draw(t, "name"), Disabled: rapid.Bool().Draw(t, "disabled"), Limits: anyLimits.Draw(t, "limits"),
			Environments: rapid.SliceOfN(anyEnv, 0, 2).Draw(t, "environments"), Isolation: anyLevel.Draw(t, "isolation"),
			Capability: anyCapability.Draw(t, "capability"),
		}
		if rapid.Bool().Draw(t, "is command") {
			d.Command = []string{"x"}
		}
		return d
	})
	anyProject = rapid.Custom(func(t *rapid.T) *tool.Project {
		names := rapid.SliceOfN(anyName, 0, 2)
		envs := rapid.SliceOfN(anyEnv, 0, 2)
		return &tool.Project{
			ID: "p", Disabled: rapid.IntRange(0, 9).Draw(t, "disabled") == 0, ReadOnly: rapid.Bool().Draw(t, "read_only"),
			Allow: tool.Allow{
				Environments: envs.Draw(t, "environments"), Tools: names.Draw(t, "tools"), Pools: names.Draw(t, "pools"),
				Inline: tool.AllowInline{
					Enabled: rapid.Bool().Draw(t, "inline.enabled"), Environments: envs.Draw(t, "inline.environments"),
					Writes: rapid.Bool().Draw(t, "inline.writes"), Network: rapid.Bool().Draw(t, "inline.network"),
				},
			},
			Isolation: anyLevel.Draw(t, "isolation"), Defaults: anyLimits.Draw(t, "defaults"), Maximum: anyLimits.Draw(t, "maximum"),
		}
	})
)

// maybeDefinition is the tool of a request, nil for inline code.
func maybeDefinition(t *rapid.T, r *tool.Request) *tool.Definition {
	if r.Inline != nil {
		return nil
	}
	d := anyDefinition.Draw(t, "tool")
	r.Tool = d.Name
	return d
}

// allowed says once more, in the plainest words, what an operator allows.
func allowed(r *tool.Request, d *tool.Definition, p *tool.Project, env tool.Environment, level tool.Isolation) bool {
	rank := map[tool.Isolation]int{"": 0, tool.IsolationNone: 1, tool.IsolationReduced: 2, tool.IsolationFull: 3}
	named := func(list []string, name string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, name)
	}
	if p.Disabled || !named(p.Allow.Pools, r.Pool) || !slices.Contains(p.Allow.Environments, env) {
		return false
	}
	if env == tool.Host && rank[level] < rank[p.Isolation] {
		return false
	}
	if d == nil {
		in := p.Allow.Inline
		return in.Enabled && slices.Contains(in.Environments, env) &&
			(in.Writes || !r.Inline.Capability.Writes) && (in.Network || !r.Inline.Capability.Network)
	}
	return !d.Disabled && named(p.Allow.Tools, d.Name) &&
		(len(d.Environments) == 0 || slices.Contains(d.Environments, env)) &&
		(env != tool.Host || rank[level] >= rank[d.Isolation])
}

func TestPropertyCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, p := anyRequest.Draw(t, "request"), anyProject.Draw(t, "project")
		d := maybeDefinition(t, r)
		env, level := anyEnv.Draw(t, "resolved"), anyLevel.Draw(t, "level")
		err := Check(r, d, p, env, level)
		if want := allowed(r, d, p, env, level); (err == nil) != want {
			t.Fatalf("got %v, want allowed: %v", err, want)
		}
		if err != nil && err.Code != tool.Forbidden {
			t.Fatalf("code %s", err.Code)
		}
	})
}

// What a planner asks for beyond the bare request never turns a refusal into
// a permission.
func TestPropertyWishesNeverWiden(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, p := anyRequest.Draw(t, "request"), anyProject.Draw(t, "project")
		d := maybeDefinition(t, r)
		env, level := anyEnv.Draw(t, "resolved"), anyLevel.Draw(t, "level")
		bare := &tool.Request{Pool: r.Pool, Tool: r.Tool}
		if r.Inline != nil {
			bare.Inline = &tool.Inline{Code: r.Inline.Code}
		}
		if Check(bare, d, p, env, level) != nil && Check(r, d, p, env, level) == nil {
			t.Fatal("the wishes of the request opened what was closed")
		}
		declared := rapid.Bool().Draw(t, "declared")
		if Writes(declared, r, p) && (p.ReadOnly || !declared) {
			t.Fatal("a read-only project is written")
		}
	})
}

func TestPropertyLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, p, worker := anyRequest.Draw(t, "request"), anyProject.Draw(t, "project"), anyLimits.Draw(t, "worker")
		d := maybeDefinition(t, r)
		checkLimits(t, r, d, p, worker)
	})
}

// fataler is what rapid's and the testing package's T have in common here.
type fataler interface{ Fatalf(string, ...any) }

// checkLimits says what holds for the limits in force whatever was wished.
func checkLimits(t fataler, r *tool.Request, d *tool.Definition, p *tool.Project, worker tool.Limits) {
	got := InForce(r, d, p, worker)
	if d := got.Timeout(); d <= 0 {
		t.Fatalf("timeout %v", d)
	}
	var lowered []string
	for _, m := range members {
		value := m.get(&got.Limits)
		var most float64
		for _, maximum := range []tool.Limits{p.Maximum, worker} {
			v := m.get(&maximum)
			if v > 0 && value > v {
				t.Fatalf("%s: %v in force, %v is the maximum", m.name, value, v)
			}
			if v > 0 && (most == 0 || v < most) {
				most = v
			}
		}
		if most > 0 && value == 0 {
			t.Fatalf("%s: not limited, %v is the maximum", m.name, most)
		}
		if value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
			t.Fatalf("%s: %v in force", m.name, value)
		}
		if value == 0 && m.name != "cpu_seconds" {
			t.Fatalf("%s: not limited, and there is a built-in limit", m.name)
		}
		if slices.Contains(got.Clamped, m.name) {
			lowered = append(lowered, m.name)
			if most != value && (!m.seconds || value != longest) {
				t.Fatalf("%s: said to be lowered, to %v of %v", m.name, value, most)
			}
		}
		// A wish that is in bounds is granted as it is.
		if wish := m.get(&r.Limits); wish > 0 && (most == 0 || wish <= most) && (!m.seconds || wish <= longest) && value != wish {
			t.Fatalf("%s: %v in force, %v was asked for and allowed", m.name, value, wish)
		}
	}
	if !slices.Equal(lowered, got.Clamped) {
		t.Fatalf("clamped %v", got.Clamped)
	}
}

// FuzzInForce merges whatever four parties could say of one fractional and
// one whole limit.
func FuzzInForce(f *testing.F) {
	f.Add(900.0, 7.0, 5.0, 600.0, 10.0, int64(1)<<40, int64(0), int64(-1), int64(1)<<30, int64(0), true)
	f.Add(math.NaN(), math.Inf(1), math.Inf(-1), 1e300, 1e-300, int64(math.MaxInt64), int64(math.MinInt64), int64(1), int64(0), int64(math.MaxInt64), false)
	f.Fuzz(func(t *testing.T, request, own, preset, most, worker float64, requestN, ownN, presetN, mostN, workerN int64, inline bool) {
		limits := func(seconds float64, n int64) tool.Limits {
			return tool.Limits{TimeoutSeconds: seconds, CPUs: seconds, CPUSeconds: seconds, MemoryBytes: n, PIDs: n, OpenFiles: n}
		}
		var d *tool.Definition
		if !inline {
			d = &tool.Definition{Command: []string{"x"}, Limits: limits(own, ownN)}
		}
		p := &tool.Project{Defaults: limits(preset, presetN), Maximum: limits(most, mostN)}
		checkLimits(t, &tool.Request{Limits: limits(request, requestN)}, d, p, limits(worker, workerN))
	})
}
