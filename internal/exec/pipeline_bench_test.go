package exec

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/catalog"
	"github.com/toolworker/toolworker/internal/tool"
)

// BenchmarkPipeline is everything but the execution, for a request of 1 KiB.
func BenchmarkPipeline(b *testing.B) {
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
	input, err := json.Marshal(map[string]any{"path": project + "/src/main.py", "count": 5, "text": strings.Repeat("x", 900)})
	if err != nil {
		b.Fatal(err)
	}
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

// noBackend succeeds at once.
type noBackend struct{}

func (*noBackend) Run(context.Context, *Task) (*Ending, error) { return ended("{}", ""), nil }
