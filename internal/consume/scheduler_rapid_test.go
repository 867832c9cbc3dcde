package consume

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/tool"
)

// TestSchedulerKeepsItsPromises drives a scheduler against a simulated queue:
// slots are neither lost nor invented, bounds hold, and whatever happened,
// once the world calms down everything that is queued gets started.
func TestSchedulerKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 6).Draw(t, "slots")
		bound := rapid.IntRange(0, 3).Draw(t, "bound")
		paused := ""
		s := newScheduler(slots, func(p string) int {
			if p == "p0" {
				return bound
			}
			return 0
		}, func(l Lane) bool { return l.Project == paused })
		queued := backlog{}
		var inFlight []fetch
		var running []Lane
		var waiting []*ticket
		lanes := rapid.Custom(func(t *rapid.T) Lane {
			return key(rapid.SampledFrom(tool.Priorities[:]).Draw(t, "priority"), fmt.Sprint("p", rapid.IntRange(0, 2).Draw(t, "project")))
		})
		grant := func() { inFlight = append(inFlight, s.grants()...) }
		end := func(i, got int, err error) {
			f := inFlight[i]
			inFlight = slices.Delete(inFlight, i, i+1)
			queued[f.lane.Lane] -= got
			for range got {
				running = append(running, f.lane.Lane)
			}
			if next, more := s.done(f, got, err); more {
				inFlight = append(inFlight, next)
			}
			grant()
		}
		claim := func() { // granted tickets run
			waiting = slices.DeleteFunc(waiting, func(w *ticket) bool {
				if isClosed(w.granted) {
					running = append(running, w.lane)
					return true
				}
				return false
			})
		}
		check := func(t *rapid.T) {
			claim()
			used := len(running)
			perProject := map[string]int{}
			for _, l := range running {
				perProject[l.Project]++
			}
			for _, f := range inFlight {
				used += f.n + f.lane.claimed
				perProject[f.lane.Project] += f.n + f.lane.claimed
			}
			if s.free < 0 || s.free+used != slots {
				t.Fatalf("%d free and %d used of %d slots", s.free, used, slots)
			}
			if bound > 0 && perProject["p0"] > bound {
				t.Fatalf("project p0 uses %d slots, its bound is %d", perProject["p0"], bound)
			}
			for p, n := range perProject {
				if s.projects[p] != n {
					t.Fatalf("project %s uses %d slots, the scheduler says %d", p, n, s.projects[p])
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"publish": func(t *rapid.T) {
				l := lanes.Draw(t, "lane")
				queued[l] += rapid.IntRange(1, 4).Draw(t, "n")
				if rapid.Bool().Draw(t, "woken") {
					s.mark(l, true)
					grant()
				}
			},
			"false alarm": func(t *rapid.T) {
				s.mark(lanes.Draw(t, "lane"), rapid.Bool().Draw(t, "woken"))
				grant()
			},
			"fetch ends": func(t *rapid.T) {
				if len(inFlight) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(inFlight)-1).Draw(t, "i")
				f := inFlight[i]
				if rapid.IntRange(0, 9).Draw(t, "luck") == 0 {
					end(i, 0, errors.New("no server"))
					return
				}
				end(i, rapid.IntRange(0, min(f.n, queued[f.lane.Lane])).Draw(t, "got"), nil)
			},
			"settle": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(running)-1).Draw(t, "i")
				l := running[i]
				running = slices.Delete(running, i, i+1)
				s.release(l)
				grant()
			},
			"park": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip()
				}
				l := running[0]
				running = running[1:]
				s.release(l)
				w := &ticket{lane: l, granted: make(chan struct{})}
				waiting = append(waiting, w)
				s.wait(w)
				grant()
			},
			"withdraw": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip()
				}
				if !s.withdraw(waiting[0]) {
					t.Fatal("a waiting ticket is not withdrawn")
				}
				waiting = waiting[1:]
			},
			"switch": func(t *rapid.T) {
				paused = rapid.SampledFrom([]string{"", "p1"}).Draw(t, "paused")
				grant()
			},
			"": check,
		})

		// The world calms down: sweeps see what is queued, fetches get it.
		paused = ""
		for range 10_000 {
			claim()
			left := len(inFlight) + len(running) + len(waiting)
			for l, n := range queued {
				if n > 0 {
					s.mark(l, false)
				}
				left += n
			}
			grant()
			claim()
			if left+len(inFlight) == 0 {
				break
			}
			for len(inFlight) > 0 {
				end(0, min(inFlight[0].n, queued[inFlight[0].lane.Lane]), nil)
			}
			claim()
			for _, l := range running {
				s.release(l)
			}
			running = nil
			grant()
		}
		check(t)
		for l, n := range queued {
			if n > 0 {
				t.Fatalf("%d messages of %v are never started", n, l)
			}
		}
		if len(waiting) > 0 || s.free != slots || len(s.lanes) != 0 || len(s.projects) != 0 {
			t.Fatalf("%d waiting, %d of %d slots free, %d lanes and %d projects remembered",
				len(waiting), s.free, slots, len(s.lanes), len(s.projects))
		}
	})
}
