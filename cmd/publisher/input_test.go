package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/command"
)

func TestInputIsMerged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "input.json")
	if err := os.WriteFile(file, []byte(`{"a": 1, "b": 2, "c": 9007199254740993}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		flags inputFlags
		stdin string
		want  string
	}{
		"nothing":            {inputFlags{}, "", `{}`},
		"text and json":      {inputFlags{Values: []string{"a=1", "b:=1", `c:={"d":[1,2]}`, "e=x=y", "f="}}, "", `{"a":"1","b":1,"c":{"d":[1,2]},"e":"x=y","f":""}`},
		"commas stay":        {inputFlags{Values: []string{"a=1,2"}}, "", `{"a":"1,2"}`},
		"later wins":         {inputFlags{File: file, JSON: `{"b":3}`, Values: []string{"a=x"}}, "", `{"a":"x","b":3,"c":9007199254740993}`},
		"standard input":     {inputFlags{File: "-"}, `{"z":null}`, `{"z":null}`},
		"colon in the key":   {inputFlags{Values: []string{"a:b=1"}}, "", `{"a:b":"1"}`},
		"null in the middle": {inputFlags{JSON: `{"a":{"b":null}}`}, "", `{"a":{"b":null}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tc.flags.object(strings.NewReader(tc.stdin))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestBadInputNamesTheFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		flags inputFlags
		want  string
	}{
		"no equals sign":  {inputFlags{Values: []string{"abc"}}, `--input "abc": expected key=text or key:=json`},
		"no key":          {inputFlags{Values: []string{"=1"}}, "expected key=text"},
		"no json":         {inputFlags{Values: []string{"a:=b c"}}, "not JSON"},
		"an array":        {inputFlags{JSON: `[1]`}, "--input-json: expected a JSON object"},
		"null":            {inputFlags{JSON: `null`}, "expected a JSON object, got null"},
		"a duplicate":     {inputFlags{JSON: `{"a":1,"a":2}`}, `duplicate object member name "a"`},
		"something after": {inputFlags{JSON: `{} {}`}, "--input-json"},
		"no such file":    {inputFlags{File: "/nonexistent/x"}, "--input-file: open /nonexistent/x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.flags.object(strings.NewReader(""))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error %v, want %q", err, tc.want)
			}
			if code := command.ExitCode(err); code != command.Usage {
				t.Errorf("exit code %d", code)
			}
		})
	}
}
