package exec

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// BenchmarkPipeline is everything of the pipeline but the execution, for a
// request of 1 KiB.
func BenchmarkPipeline(b *testing.B) {
	pipeline, input := benchPipeline(b)
	for _, environment := range []tool.Environment{tool.Host, tool.Container} {
		b.Run(string(environment), func(b *testing.B) {
			r := request(with(string(input)), func(r *tool.Request) { r.ToolEnv = environment })
			b.ReportAllocs()
			for b.Loop() {
				if res := pipeline.Execute(b.Context(), r); res.Error != nil {
					b.Fatal(res.Error)
				}
			}
		})
	}
}

// BenchmarkWholeRequest is what a worker computes for one request of 1 KiB:
// decode and validate the event, resolve, guard, map, encode the result.
// Under 60 us is the goal.
func BenchmarkWholeRequest(b *testing.B) {
	pipeline, input := benchPipeline(b)
	r := request(with(string(input)))
	r.Source, r.CorrelationID = "/planner", "c-1"
	r.TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	m, err := event.EncodeRequest(r, "tools")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Data)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := event.DecodeRequest(m, "tools")
		if err != nil {
			b.Fatal(err)
		}
		res := pipeline.Execute(b.Context(), r)
		if res.Error != nil {
			b.Fatal(res.Error)
		}
		if _, err := event.EncodeResult(b.Context(), res, r, nil, "tools"); err != nil {
			b.Fatal(err)
		}
		res.Close()
	}
}

// benchPipeline is a pipeline whose tools succeed at once, and an input that
// makes the event of a request about 1 KiB.
func benchPipeline(b *testing.B) (Executor, []byte) {
	b.Helper()
	dir, project := b.TempDir(), b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "entries.yaml"), []byte(strings.ReplaceAll(benchCatalogue, "DIR", project)), 0o600); err != nil {
		b.Fatal(err)
	}
	source, err := catalog.Open(b.Context(), catalog.Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	pipeline, err := New(Config{Catalogue: source, Host: &noBackend{}, Container: &noBackend{}, HostIsolation: tool.IsolationFull, LookUpEnv: func(string) (string, bool) { return "x", true }})
	if err != nil {
		b.Fatal(err)
	}
	input, err := json.Marshal(map[string]any{"path": project + "/src/main.py", "count": 5, "text": strings.Repeat("x", 550)})
	if err != nil {
		b.Fatal(err)
	}
	return pipeline, input
}

// noBackend succeeds at once.
type noBackend struct{}

func (*noBackend) Run(context.Context, *Task) (*Ending, error) { return ended("{}", ""), nil }
