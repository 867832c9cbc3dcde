package exectest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var values = []test{
	{"an assigned result is its JSON", func(t *testing.T, s *Subject) {
		for source, want := range map[string]string{
			"result = None":                 `null`,
			"result = 0":                    `0`,
			"result = True":                 `true`,
			"result = ''":                   `""`,
			"result = 'é\\n\\x00'":          `"é\n\u0000"`,
			"result = 2**64 + 1":            `18446744073709551617`,
			"result = 1.5":                  `1.5`,
			"result = [1, (2, 3), {}]":      `[1, [2, 3], {}]`,
			"result = {'a': {'b': [None]}}": `{"a": {"b": [null]}}`,
			"result = 1\nresult = 2":        `2`,
			"def f():\n  global result\n  result = 3\nf()": `3`,
			"result = input_data":                          `{"k": [1]}`,
		} {
			task := s.code(source)
			task.Input = json.RawMessage(`{"k": [1]}`)
			e := s.run(t, task)
			e.wantExit(t, 0)
			if e.ValueError != "" || !sameJSON(string(e.Value), want) {
				t.Errorf("%q: %s", source, e)
			}
		}
	}},
	{"a result that is not assigned is absent", func(t *testing.T, s *Subject) {
		for _, source := range []string{"print(1)", "x = 1", "def f():\n  result = 1\nf()", "result = 1\ndel result", ""} {
			e := s.run(t, s.code(source+"\n"))
			e.wantExit(t, 0)
			if e.Value != nil || e.ValueError != "" {
				t.Errorf("%q: %s", source, e)
			}
		}
	}},
	{"a result without a strict JSON form says why", func(t *testing.T, s *Subject) {
		for _, source := range []string{
			"result = float('nan')", "result = [float('inf')]", "result = {1, 2}", "result = object()", "result = b'x'", "result = '\\ud800'",
			"result = []; result.append(result)", "result = {'a': 1, 'b': {(1, 2): 3}}", "result = {'1': 1, 1: 2}", "result = print",
		} {
			e := s.run(t, s.code(source))
			e.wantExit(t, 0)
			if e.Value != nil || e.ValueError == "" {
				t.Errorf("%q: %s", source, e)
			}
		}
	}},
	{"a result beside printed output stays out of it", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("print('text')\nresult = {'n': 1}"))
		e.wantExit(t, 0)
		if e.combined != "text\n" || !sameJSON(string(e.Value), `{"n": 1}`) {
			t.Errorf("%s", e)
		}
	}},
	{"a result of 4 MiB", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("result = 'x' * (4 << 20)"))
		e.wantExit(t, 0)
		if string(e.Value) != `"`+strings.Repeat("x", 4<<20)+`"` {
			t.Errorf("%d bytes: %s", len(e.Value), e)
		}
	}},
	{"code that exits has no say about its result", func(t *testing.T, s *Subject) {
		e := s.run(t, s.code("import os\nresult = 1\nos._exit(3)"))
		e.wantExit(t, 3)
		if e.Value != nil {
			t.Errorf("%s", e)
		}
	}},
	{"commands have none", func(t *testing.T, s *Subject) {
		e := s.run(t, s.python("result = 1"))
		e.wantExit(t, 0)
		if e.Value != nil || e.ValueError != "" {
			t.Errorf("%s", e)
		}
	}},
}

// sameJSON compares documents by their tokens, numbers to the last digit.
func sameJSON(a, b string) bool {
	decode := func(s string) (v any, err error) {
		dec := json.NewDecoder(strings.NewReader(s))
		dec.UseNumber()
		err = dec.Decode(&v)
		return v, err
	}
	x, err := decode(a)
	if err != nil {
		return false
	}
	y, err := decode(b)
	return err == nil && reflect.DeepEqual(x, y)
}
