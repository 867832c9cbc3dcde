package exectest

import "testing"

// Run runs the suite. newSubject is called for every test and returns a
// backend that nothing else uses, or a shared one with a project of its own.
func Run(t *testing.T, makeSubject func(t *testing.T) Subject) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"processes", processes},
		{"stopping", stopping},
		{"output", output},
		{"input", input},
		{"value", values},
		{"surroundings", surroundings},
		{"files", files},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(t, newSubject(t, makeSubject)) })
			}
		})
	}
}

// test is one case, named after what happens and what is right.
type test struct {
	name string
	run  func(t *testing.T, s *Subject)
}
