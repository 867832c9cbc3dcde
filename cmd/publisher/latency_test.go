package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPercentiles(t *testing.T) {
	var measured []time.Duration
	for i := 100; i >= 1; i-- {
		measured = append(measured, time.Duration(i)*time.Millisecond)
	}
	l := newLatencies(measured)
	for p, want := range map[float64]time.Duration{0: 1, 50: 50, 90: 90, 95: 95, 99: 99, 99.9: 100, 100: 100} {
		if got := l.percentile(p); got != want*time.Millisecond {
			t.Errorf("p%v = %v, want %v ms", p, got, want)
		}
	}
	if got := latencies(nil).percentile(50); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	if got := newLatencies([]time.Duration{7}).percentile(99); got != 7 {
		t.Errorf("of one: %v", got)
	}
}

func TestBucketsHoldEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		measured := rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, int64(time.Hour)), func(n int64) time.Duration {
			return time.Duration(n)
		}), 1, 200).Draw(t, "measured")
		l := newLatencies(measured)
		list := l.buckets(12)
		sum := 0
		for i, b := range list {
			sum += b.Count
			if i > 0 && b.Most < list[i-1].Most {
				t.Fatalf("bounds go down: %v", list)
			}
		}
		if sum != len(measured) || len(list) > 12 {
			t.Fatalf("%d of %d in %d buckets", sum, len(measured), len(list))
		}
		if last := l[len(l)-1]; last > time.Microsecond && list[len(list)-1].Most < last {
			t.Fatalf("the longest, %v, is beyond %v", last, list)
		}
	})
}

func TestPlotFits(t *testing.T) {
	var buf bytes.Buffer
	l := newLatencies([]time.Duration{time.Millisecond, 2 * time.Millisecond, 2 * time.Millisecond, time.Second})
	if err := l.plot(&buf, 60); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(buf.String()) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 60 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	if !strings.Contains(buf.String(), "##########") {
		t.Errorf("no bars:\n%s", buf.String())
	}
}

func TestShortDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.00 us", 1500: "1.50 us", 150 * time.Microsecond: "150 us", 15600 * time.Microsecond: "15.6 ms",
		999 * time.Millisecond: "999 ms", 2340 * time.Millisecond: "2.34 s", 3 * time.Minute: "180 s",
	} {
		if got := short(d); got != want {
			t.Errorf("%d: %q, want %q", d, got, want)
		}
	}
}
