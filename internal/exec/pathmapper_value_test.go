package exec

import (
	"fmt"
	"strings"
)

// HostToContainerValue maps every string of a value as encoding/json decodes
// it: maps, slices and strings, at any depth. The value given is not changed.
func (m *PathMapper) HostToContainerValue(v any) (any, error) {
	return rerootValue(v, m.host, m.container)
}

// ContainerToHostValue is HostToContainerValue the other way round.
func (m *PathMapper) ContainerToHostValue(v any) (any, error) {
	return rerootValue(v, m.container, m.host)
}

func rerootValue(v any, from, to string) (any, error) {
	switch v := v.(type) {
	case string:
		mapped, _, err := reroot(v, from, to)
		return mapped, err
	case []string:
		out := make([]string, len(v))
		for i, s := range v {
			mapped, _, err := reroot(s, from, to)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
			out[i] = mapped
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			mapped, err := rerootValue(e, from, to)
			if err != nil {
				return nil, fmt.Errorf("%d: %w", i, err)
			}
			out[i] = mapped
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			mapped, err := rerootValue(e, from, to)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k, err)
			}
			out[k] = mapped
		}
		return out, nil
	}
	return v, nil
}

// below reports whether a cleaned absolute path is root or below it.
func below(clean, root string) bool {
	rest, ok := strings.CutPrefix(clean, root)
	return ok && startsElement(rest)
}
