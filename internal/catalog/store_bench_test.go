package catalog

import "testing"

// BenchmarkApply is the first apply of 5,000 tools and 1,000 projects, and
// BenchmarkBucketLoad what a worker then reads at its start.
func BenchmarkApply(b *testing.B) {
	dir := b.TempDir()
	largeCatalogue(b, dir, 5000, 1000)
	for b.Loop() {
		b.StopTimer()
		s, _, js := newStore(b)
		b.StartTimer()
		if _, err := s.Apply(b.Context(), dir); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		js.Conn().Close()
		b.StartTimer()
	}
}

func BenchmarkBucketLoad(b *testing.B) {
	dir := b.TempDir()
	largeCatalogue(b, dir, 5000, 1000)
	s, _, _ := newStore(b)
	if _, err := s.Apply(b.Context(), dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		snapshot, faults, err := s.Snapshot(b.Context())
		if err != nil || len(faults) > 0 || len(snapshot.List()) != 6000 {
			b.Fatal(err, faults)
		}
	}
}
