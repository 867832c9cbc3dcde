package consume

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// turns takes n turns of a ring in which everybody may be served.
func turns(r *ring, n int) []string {
	var order []string
	for range n {
		l := r.first(func(*lane) bool { return true })
		r.last = l
		order = append(order, l.Project)
	}
	return order
}

func TestRingServesInTurn(t *testing.T) {
	var r ring
	for _, p := range []string{"a", "b", "c"} {
		r.add(&lane{Lane: Lane{Project: p}})
	}
	got := turns(&r, 6)
	if !slices.Equal(got[:3], got[3:]) || len(slices.Compact(slices.Sorted(slices.Values(got[:3])))) != 3 {
		t.Fatalf("turns %v: expected everybody once a round", got)
	}
}

func TestRingNewcomerComesBeforeTheOneJustServed(t *testing.T) {
	var r ring
	a, b := &lane{Lane: Lane{Project: "a"}}, &lane{Lane: Lane{Project: "b"}}
	r.add(a)
	turns(&r, 5)
	r.add(b)
	if got := turns(&r, 4); !slices.Equal(got, []string{"b", "a", "b", "a"}) {
		t.Fatalf("turns %v", got)
	}
}

func TestRingFirstUsesUpNoTurn(t *testing.T) {
	var r ring
	r.add(&lane{Lane: Lane{Project: "a"}})
	r.add(&lane{Lane: Lane{Project: "b"}})
	all := func(*lane) bool { return true }
	if once, twice := r.first(all), r.first(all); once != twice {
		t.Fatal("asking twice gave two answers")
	}
	if r.first(func(*lane) bool { return false }) != nil {
		t.Fatal("nobody may be served, and somebody is")
	}
}

// TestRingIsACircle compares a ring with a list of its members.
func TestRingIsACircle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ring
		var members []*lane
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				l := &lane{}
				r.add(l)
				members = append(members, l)
			},
			"remove": func(t *rapid.T) {
				if len(members) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(members)-1).Draw(t, "i")
				r.remove(members[i])
				members = slices.Delete(members, i, i+1)
			},
			"serve": func(t *rapid.T) {
				if l := r.first(func(*lane) bool { return true }); l != nil {
					r.last = l
				}
			},
			"": func(t *rapid.T) {
				if r.size != len(members) || (r.last == nil) != (len(members) == 0) {
					t.Fatalf("size %d, expected %d", r.size, len(members))
				}
				seen := map[*lane]bool{}
				for range members {
					l := r.first(func(l *lane) bool { return !seen[l] })
					if l == nil || !slices.Contains(members, l) || l.next.prev != l {
						t.Fatalf("not a circle of its members")
					}
					seen[l] = true
				}
			},
		})
	})
}
