package event

import (
	"errors"
	"strings"
	"time"
)

// errTime: the text is no time of RFC 3339.
var errTime = errors.New("expected a time of RFC 3339")

// parseTime reads a time of RFC 3339, strictly, which time.Parse does not. It
// may have lower-case letters, and a leap second: that is the second after it.
func parseTime(s string) (time.Time, error) {
	if !shapedRFC3339(s) {
		return time.Time{}, errTime
	}
	s = strings.ToUpper(s)
	leap := s[17:19] == "60"
	if leap {
		s = s[:17] + "59" + s[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, errTime
	}
	if leap {
		if utc := t.UTC(); utc.Hour() != 23 || utc.Minute() != 59 {
			return time.Time{}, errTime
		}
		t = t.Add(time.Second)
	}
	return t, nil
}

// shapedRFC3339 reports whether s has the form of RFC 3339: the separators
// where they belong and digits elsewhere. Values are time.Parse's to judge.
func shapedRFC3339(s string) bool {
	const form = "0000-00-00T00:00:00"
	if len(s) <= len(form) || !shaped(s[:len(form)], form) {
		return false
	}
	zone := s[len(form):]
	if zone[0] == '.' {
		digits := 1
		for digits < len(zone) && zone[digits] >= '0' && zone[digits] <= '9' {
			digits++
		}
		if digits == 1 {
			return false
		}
		zone = zone[digits:]
	}
	switch {
	case zone == "Z" || zone == "z":
		return true
	case shaped(zone, "+00:00"), shaped(zone, "-00:00"):
		return zone[1:3] <= "23" && zone[4:6] <= "59"
	}
	return false
}

// shaped compares s with a form, in which 0 is any digit and T either case.
func shaped(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; form[i] {
		case '0':
			if c < '0' || c > '9' {
				return false
			}
		case 'T':
			if c != 'T' && c != 't' {
				return false
			}
		default:
			if c != form[i] {
				return false
			}
		}
	}
	return true
}
