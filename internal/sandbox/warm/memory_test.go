package warm

import "testing"

func TestMemory(t *testing.T) {
	if m := (&Memory{Reserve: 0}); !m.Free() {
		t.Error("no memory at all is free")
	}
	m := &Memory{Reserve: 1}
	if m.Free() {
		t.Error("more than all memory is free")
	}
	m.Reserve = 0
	if m.Free() {
		t.Error("an answer was not kept")
	}
}

func TestMeminfo(t *testing.T) {
	b := []byte("MemTotal:       24689664 kB\nMemAvailable:   12000000 kB\nHugePages_Total:       0\n")
	for name, want := range map[string]int64{"MemTotal:": 24689664, "MemAvailable:": 12000000, "HugePages_Total:": 0, "None:": 0} {
		if got := meminfo(b, name); got != want {
			t.Errorf("%s %d, want %d", name, got, want)
		}
	}
}
