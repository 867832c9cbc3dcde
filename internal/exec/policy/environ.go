package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
)

// DefaultPath is the PATH of tools whose worker has none.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Environ is the whole environment of a tool, "NAME=value" sorted by name:
// PATH, LANG and TERM of the worker, then what the project gives, then what
// the tool gives, then what env_from takes from the worker. Nothing else of
// the worker's own is passed. lookUp reads the worker's environment; d is nil
// for inline code.
//
// The error says why the tool cannot be started: a variable of env_from that
// the worker does not have, or a name or value that no process can be given.
// It names the variable, never a value.
func Environ(d *tool.Definition, p *tool.Project, lookUp func(string) (string, bool)) ([]string, error) {
	worker := func(name string) string {
		value, _ := lookUp(name)
		return value
	}
	env := map[string]string{
		"PATH": cmp.Or(worker("PATH"), DefaultPath),
		"LANG": cmp.Or(worker("LANG"), "C.UTF-8"),
		"TERM": cmp.Or(worker("TERM"), "dumb"),
	}
	maps.Copy(env, p.Env)
	if d != nil {
		maps.Copy(env, d.Env)
		for _, name := range d.EnvFrom {
			value, ok := lookUp(name)
			if !ok {
				return nil, fmt.Errorf("environment variable %s of env_from is not set for the worker", name)
			}
			env[name] = value
		}
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !ValidVariable(name) {
			return nil, fmt.Errorf("environment variable %q: expected a name of A-Z a-z 0-9 _ that does not begin with a digit", name)
		}
		if strings.IndexByte(env[name], 0) >= 0 {
			return nil, fmt.Errorf("environment variable %s has a NUL in its value", name)
		}
		list = append(list, name+"="+env[name])
	}
	return list, nil
}

// ValidVariable reports whether s can name an environment variable:
// A-Z a-z 0-9 _, not beginning with a digit.
func ValidVariable(s string) bool {
	if s == "" || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
		default:
			return false
		}
	}
	return true
}
