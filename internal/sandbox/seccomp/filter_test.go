package seccomp

import "testing"

func TestSize(t *testing.T) {
	for _, a := range []Arch{AMD64, ARM64} {
		if n := len(a.Filter(Options{})); n > 4096 {
			t.Errorf("%s: %d instructions, the kernel takes 4096", a.name, n)
		}
	}
}
