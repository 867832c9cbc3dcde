package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/toolworker/toolworker/internal/terminal"
)

// latencies are measured durations, sorted.
type latencies []time.Duration

func newLatencies(measured []time.Duration) latencies {
	return slices.Sorted(slices.Values(measured))
}

// percentile is the smallest duration that p percent are not above (nearest
// rank); 0 when nothing was measured.
func (l latencies) percentile(p float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(l))))
	return l[min(max(rank, 1), len(l))-1]
}

// bucket is one bar of a plot: the durations from the end of the one before
// up to and including Most.
type bucket struct {
	Most  time.Duration
	Count int
}

// buckets spreads the durations over at most n bars whose bounds grow by a
// constant factor, because latencies spread over magnitudes.
func (l latencies) buckets(n int) []bucket {
	if len(l) == 0 {
		return nil
	}
	least, most := max(l[0], time.Microsecond), max(l[len(l)-1], time.Microsecond)
	factor := math.Pow(float64(most)/float64(least), 1/float64(n-1))
	list := []bucket{{Most: least}}
	if factor > 1 {
		for i := 1; i < n-1; i++ {
			list = append(list, bucket{Most: time.Duration(float64(least) * math.Pow(factor, float64(i)))})
		}
		list = append(list, bucket{Most: most})
	}
	i := 0
	for _, d := range l {
		for d > list[i].Most && i < len(list)-1 {
			i++
		}
		list[i].Count++
	}
	return list
}

// plot draws the durations as bars that fit into width columns.
func (l latencies) plot(w io.Writer, width int) error {
	list := l.buckets(12)
	tallest := 0
	for _, b := range list {
		tallest = max(tallest, b.Count)
	}
	room := max(10, min(60, width-30))
	var rows [][]string
	for _, b := range list {
		bar := strings.Repeat("#", (b.Count*room+tallest-1)/tallest)
		rows = append(rows, []string{"<= " + short(b.Most), fmt.Sprint(b.Count), bar})
	}
	return terminal.Write(w, rows, 0, 1)
}

// short is a duration with three significant digits.
func short(d time.Duration) string {
	unit, name := time.Second, "s"
	switch {
	case d < time.Millisecond:
		unit, name = time.Microsecond, "us"
	case d < time.Second:
		unit, name = time.Millisecond, "ms"
	}
	v := float64(d) / float64(unit)
	digits := 2
	switch {
	case v >= 100:
		digits = 0
	case v >= 10:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, name)
}
