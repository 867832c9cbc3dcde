package python

import (
	"os/exec"
	"testing"
)

// BenchmarkCold shows what the bootstrap adds to the start of an interpreter.
func BenchmarkCold(b *testing.B) {
	python, err := interpreter()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(python.Path, "-I", "-S", "-c", "pass").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, code := range map[string]string{"print": "print(1)", "result": "result = input_data"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := runCold(b, &Request{Name: "bench", Code: []byte(code), Input: []byte(`{"a": 1}`)}); got.exit != 0 {
					b.Fatal(got)
				}
			}
		})
	}
}
