package python

import (
	"os/exec"
	"testing"
	"time"
)

// BenchmarkCold shows what the bootstrap adds to the start of an interpreter.
func BenchmarkCold(b *testing.B) {
	python, err := interpreter()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		var cpu time.Duration
		for b.Loop() {
			cmd := exec.Command(python.Path, "-I", "-S", "-c", "pass")
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			cpu += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		}
		b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/op")
	})
	for name, code := range map[string]string{"print": "print(1)", "result": "result = input_data"} {
		b.Run(name, func(b *testing.B) {
			var cpu time.Duration
			for b.Loop() {
				got := runCold(b, &Request{Name: "bench", Code: []byte(code), Input: []byte(`{"a": 1}`)})
				if got.exit != 0 {
					b.Fatal(got)
				}
				cpu += got.cpu
			}
			b.ReportMetric(float64(cpu.Microseconds())/float64(b.N), "cpu-us/op")
		})
	}
}
