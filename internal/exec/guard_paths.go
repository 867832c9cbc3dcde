package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
)

// pathGuard checks the paths that an input names (protocol section 2, Paths).
type pathGuard struct {
	root root
	// workspace is the root inside the container; "" on the host.
	workspace string
}

// maxNamedFaults bounds how many faults one error lists.
const maxNamedFaults = 10

// check refuses an input of which a path leads out of the sandbox root. Every
// such path is named by its JSON pointer; where it leads is not told.
func (g *pathGuard) check(input json.RawMessage) error {
	var escapes, nuls []string
	var fault error
	err := eachPath(input, func(pointer, p string) {
		reason, err := g.refusal(p)
		switch {
		case err != nil:
			fault = err
		case reason == holdsNUL:
			nuls = append(nuls, pointer+": "+quote(p)+" "+reason)
		case reason != "":
			escapes = append(escapes, pointer+": "+quote(p)+" "+reason)
		}
	})
	switch {
	case err != nil:
		return tool.Errorf(tool.InvalidRequest, "input: %v", err)
	case fault != nil:
		return fault
	case len(nuls) > 0:
		return tool.Errorf(tool.InvalidRequest, "%s", listed(nuls))
	case len(escapes) > 0:
		return tool.Errorf(tool.PathEscape, "%s", listed(escapes))
	}
	return nil
}

const (
	holdsNUL = "holds a NUL"
	notLocal = "is no URL of a file on this machine"
)

// refusal says why p is refused, "" when it is not.
func (g *pathGuard) refusal(p string) (string, error) {
	paths, ok := readings(p)
	if !ok {
		return notLocal, nil
	}
	for _, p := range paths {
		if strings.IndexByte(p, 0) >= 0 {
			return holdsNUL, nil
		}
		if g.workspace != "" && path.IsAbs(p) && !g.root.names(p) {
			continue // the container is the boundary
		}
		if _, reason, err := g.root.locate(p); reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// isPathKey reports whether the value of a member with this name is a path.
func isPathKey(name string) bool {
	return name == "path" || strings.HasSuffix(name, "_path") || strings.HasSuffix(name, "_file")
}

// eachPath calls f with the JSON pointer and the text of every path of an
// input: the string of a path key, or each string of its list, at any depth.
func eachPath(input json.RawMessage, f func(pointer, p string)) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(input)) // read in place
	// levels[i] tells whether strings directly at that depth are paths.
	levels := []bool{false}
	pending := false // the last name read is a path key
	for {
		depth := dec.StackDepth()
		name := atName(dec)
		container, _ := dec.StackIndex(depth)
		token, err := dec.ReadToken()
		if err != nil {
			return fmt.Errorf("read document: %w", err)
		}
		isPath := levels[depth] || container == '{' && pending
		switch kind := token.Kind(); {
		case name && kind == '"':
			pending = isPathKey(token.String())
			continue
		case kind == '[':
			levels = append(levels[:depth+1], container == '{' && pending)
		case kind == '{':
			levels = append(levels[:depth+1], false)
		case kind == '"' && isPath:
			f("/input"+string(dec.StackPointer()), token.String())
		}
		pending = false
		if dec.StackDepth() == 0 {
			return nil
		}
	}
}

func listed(faults []string) string {
	if more := len(faults) - maxNamedFaults; more > 0 {
		faults = append(faults[:maxNamedFaults:maxNamedFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(faults, "; ")
}

// quote quotes what a planner wrote, cut to a length that a person reads.
func quote(s string) string {
	const most = 200
	if len(s) > most {
		return strconv.Quote(strings.ToValidUTF8(s[:most], "")) + "..."
	}
	return strconv.Quote(s)
}
