package schemas_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/schemas"
)

func TestValue(t *testing.T) {
	got, err := schemas.Value([]byte(` {"a":[1,9007199254740993,1e3,true,null,"x"],"b":{}} `))
	want := map[string]any{
		"a": []any{json.Number("1"), json.Number("9007199254740993"), json.Number("1e3"), true, nil, "x"},
		"b": map[string]any{},
	}
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("error %v, value (-want +got):\n%s", err, diff)
	}
}

func TestValueRefuses(t *testing.T) {
	for name, document := range map[string]string{
		"nothing":             ``,
		"NaN":                 `NaN`,
		"duplicate member":    `{"a":1,"a":2}`,
		"invalid UTF-8":       "\"\xff\"",
		"a second document":   `{} {}`,
		"noise after it":      `{} x`,
		"cut in a list":       `[1,`,
		"cut in an object":    `{"a":`,
		"no name":             `{1:2}`,
		"100,000 levels":      strings.Repeat("[", 100_000),
		"a huge exponent":     `[1e1000000000]`,
		"a tiny exponent":     `{"a":1e-1000000000}`,
		"a million digits":    strings.Repeat("1", 1_000_000),
		"a lone surrogate":    `"\ud800"`,
		"a control in a text": "\"\x01\"",
	} {
		t.Run(name, func(t *testing.T) {
			v, err := schemas.Value([]byte(document))
			if err == nil {
				t.Errorf("accepted as %v", v)
			} else if len(err.Error()) > 500 {
				t.Errorf("error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestFaultsOfForeignSchemas(t *testing.T) {
	if got := schemas.Faults(nil); got != nil {
		t.Errorf("no error has faults %v", got)
	}
	if got := schemas.Faults(errors.New("broken")); len(got) != 1 {
		t.Errorf("another error has faults %v, expected itself", got)
	}
}
