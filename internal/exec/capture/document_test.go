package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestDocument(t *testing.T) {
	for in, want := range map[string]bool{
		`{}`:                                   true,
		` {"a": [1, 2.5e3, "x", null, true]} `: true,
		"\n42\n":                               true,
		`"text"`:                               true,
		`null`:                                 true,
		`9007199254740993`:                     true,
		`1e400`:                                true,
		`{"a": {"b": 1}, "c": {"b": 1}}`:       true,
		`{"":1}`:                               true,
		strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000): true,

		``:                            false,
		"  \n":                        false,
		`{`:                           false,
		`{"a": 1, "a": 2}`:            false,
		`{"a": 1, "\u0061": 2}`:       false,
		`{"x": {"a": 1, "a": 2}}`:     false,
		`NaN`:                         false,
		`[Infinity]`:                  false,
		`{"a": 1} {"b": 2}`:           false,
		`{"a": 1}x`:                   false,
		`noise {"a": 1}`:              false,
		`'single'`:                    false,
		`[1,]`:                        false,
		`01`:                          false,
		"\"\xff\"":                    false,
		`"\ud800"`:                    false,
		"\ufeff{}":                    false,
		"{}\x00":                      false,
		"\"line\nbreak\"":             false,
		strings.Repeat("[", 100_000):  false,
		strings.Repeat(`{"a":`, 11e3): false,
	} {
		got, err := Document(t.Context(), tool.Bytes(in))
		if err != nil || got != want {
			t.Errorf("%.40q: got %v, %v, want %v", in, got, err, want)
		}
		if got && !json.Valid([]byte(in)) {
			t.Errorf("%.40q: another reader refuses it", in)
		}
	}
}

func TestDocumentBoundsTheNamesItRemembers(t *testing.T) {
	const most = 100
	object := func(names int) string {
		var b strings.Builder
		for i := range names {
			fmt.Fprintf(&b, `"%x":0,`, i)
		}
		return "{" + b.String() + `"last":0}`
	}
	for _, test := range []struct {
		name string
		doc  string
		ok   bool
	}{
		{"as many as may be", object(most - 1), true},
		{"one more", object(most), false},
		{"nested, together too many", `{"a":{"b":` + object(most-2) + `}}`, false},
		{"closed again", "[" + strings.Repeat(object(most-1)+",", 10) + "0]", true},
		{"closed again, within an open one", `{"a":` + object(most-2) + `,"b":` + object(most-3) + `}`, true},
	} {
		err := readDocument(jsontext.NewDecoder(strings.NewReader(test.doc)), most)
		if (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	if ok, err := Document(t.Context(), tool.Bytes(object(10_000))); !ok || err != nil {
		t.Errorf("an ordinary document: got %v, %v", ok, err)
	}
}

func TestDocumentReportsWhatIsNotTheDocumentsFault(t *testing.T) {
	spool := NewSpool("", 0)
	if _, err := spool.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := spool.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Document(t.Context(), spool); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(tool.ErrCancelled)
	for _, doc := range []string{"[1]", "[" + strings.Repeat(" ", smallDocument) + "]"} {
		if _, err := Document(ctx, tool.Bytes(doc)); !errors.Is(err, tool.ErrCancelled) {
			t.Errorf("%d bytes, cancelled: got %v", len(doc), err)
		}
	}
}

func FuzzDocument(f *testing.F) {
	for _, doc := range []string{`{"a":[1,{"b":"\u00e9"}]}`, `{"a":1,"a":2}`, "NaN", `"\ud800"`, "\ufeff1", "[[[["} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		ok, err := Document(context.Background(), tool.Bytes(doc))
		if err != nil {
			t.Fatal(err)
		}
		if ok && !json.Valid(doc) {
			t.Fatalf("%q passed and is no JSON", doc)
		}
	})
}
