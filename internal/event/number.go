package event

import (
	"math/big"
	"strconv"

	"github.com/toolworker/toolworker/schemas"
)

// Bounds of the numbers in a request, those of the schema.
const (
	maxCount   = 1<<53 - 1
	minSeconds = 1e-9
	maxSeconds = 1e9
)

// count reads a whole number from least to most, however it is written.
func (r *reader) count(n *int64, least, most int64) error {
	text, err := r.number()
	if err != nil {
		return err
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		exact, ok := exactly(text)
		if !ok || !exact.IsInt() || !exact.Num().IsInt64() {
			return r.refuse("%s: expected a whole number from %d to %d", cut(text, maxShown), least, most)
		}
		v = exact.Num().Int64()
	}
	if v < least || v > most {
		return r.refuse("%s: expected a whole number from %d to %d", cut(text, maxShown), least, most)
	}
	*n = v
	return nil
}

// quantity reads a number from least to most, fractions allowed.
func (r *reader) quantity(f *float64, least, most float64) error {
	text, err := r.number()
	if err != nil {
		return err
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < least || v > most || (v == least || v == most) && !within(text, least, most) {
		return r.refuse("%s: expected a number from %g to %g", cut(text, maxShown), least, most)
	}
	*f = v
	return nil
}

func (r *reader) number() (string, error) {
	t, err := r.d.ReadToken()
	if err != nil {
		return "", err
	}
	if t.Kind() != '0' {
		return "", r.refuse("expected a number")
	}
	return t.String(), nil
}

// within compares exactly what was rounded to one of the bounds.
func within(text string, least, most float64) bool {
	exact, ok := exactly(text)
	if !ok {
		return false
	}
	low, _ := exactly(strconv.FormatFloat(least, 'g', -1, 64))
	high, _ := exactly(strconv.FormatFloat(most, 'g', -1, 64))
	return exact.Cmp(low) >= 0 && exact.Cmp(high) <= 0
}

// exactly is a number as a fraction, unless it is too large to be one.
func exactly(text string) (*big.Rat, bool) {
	if !schemas.NumberInBounds(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}
