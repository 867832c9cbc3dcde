package capture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

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
	var many bytes.Buffer // distinct names in one object
	many.WriteByte('{')
	for i := range MaxOpenNames + 1 {
		fmt.Fprintf(&many, `"%x":0,`, i)
	}
	many.WriteString(`"z":0}`)
	if ok, err := Document(t.Context(), tool.Bytes(many.Bytes())); ok || err != nil {
		t.Errorf("one object: got %v, %v", ok, err)
	}
	few := "[" + strings.Repeat(`{"a":0,"b":{"c":0}},`, MaxOpenNames/2) + "0]" // closed again
	if ok, err := Document(t.Context(), tool.Bytes(few)); !ok || err != nil {
		t.Errorf("many objects: got %v, %v", ok, err)
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
