package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/command"
)

// inputFlags are the ways to give a tool its input. They are merged member by
// member: file, then JSON, then single values.
type inputFlags struct {
	Values []string `name:"input" short:"i" sep:"none" placeholder:"KEY=TEXT" help:"One member of the input, as text (key=text) or as JSON (key:=json); repeatable."`
	JSON   string   `name:"input-json" placeholder:"JSON" help:"The input as a JSON object."`
	File   string   `name:"input-file" placeholder:"FILE" help:"File with the input as a JSON object; - reads standard input."`
}

// object is the input as one JSON object. Members keep their exact bytes, so
// that large numbers stay intact.
func (f *inputFlags) object(stdin io.Reader) ([]byte, error) {
	input := map[string]jsontext.Value{}
	if f.File != "" {
		text, err := readFile(f.File, stdin)
		if err != nil {
			return nil, command.Usagef("--input-file: %w", err)
		}
		if err := merge(input, text); err != nil {
			return nil, command.Usagef("--input-file %s: %w", f.File, err)
		}
	}
	if f.JSON != "" {
		if err := merge(input, []byte(f.JSON)); err != nil {
			return nil, command.Usagef("--input-json: %w", err)
		}
	}
	for _, v := range f.Values {
		key, value, err := parseValue(v)
		if err != nil {
			return nil, command.Usagef("--input %q: %w", v, err)
		}
		input[key] = value
	}
	return json.Marshal(input, json.Deterministic(true))
}

// parseValue reads key=text or key:=json.
func parseValue(v string) (key string, value jsontext.Value, err error) {
	key, text, ok := strings.Cut(v, "=")
	key, raw := strings.CutSuffix(key, ":")
	switch {
	case !ok || key == "":
		return "", nil, fmt.Errorf("expected key=text or key:=json")
	case raw:
		value = jsontext.Value(text)
		if !value.IsValid() {
			return "", nil, fmt.Errorf("what follows := is not JSON")
		}
		return key, value, nil
	}
	value, err = json.Marshal(text)
	return key, value, err
}

// merge sets the members of a JSON object. Duplicate members are refused.
func merge(input map[string]jsontext.Value, text []byte) error {
	var members map[string]jsontext.Value
	if err := json.Unmarshal(text, &members); err != nil {
		return fmt.Errorf("expected a JSON object: %w", err)
	}
	if members == nil {
		return fmt.Errorf("expected a JSON object, got null")
	}
	maps.Copy(input, members)
	return nil
}

// readFile reads a file, or standard input for "-".
func readFile(path string, stdin io.Reader) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(path)
}
