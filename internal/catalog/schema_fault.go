package catalog

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolworker/toolworker/schemas"
)

// schemaFaults says where in a schema the compiler stumbled.
func schemaFaults(doc any, err error) []schemas.Fault {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		faults := schemas.Faults(invalid.Err)
		for i := range faults {
			if strings.HasSuffix(faults[i].Message, "format regex") {
				faults[i].Message += " (RE2: without look-around and back-references)"
			}
		}
		return faults
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		address := strings.TrimPrefix(load.URL, schemaBase)
		return []schemas.Fault{{
			Pointer: findReference(doc, address),
			Message: fmt.Sprintf("refers to %q: schemas are never loaded from elsewhere", address),
		}}
	}
	message := strings.ReplaceAll(err.Error(), schemaAddress, "")
	return []schemas.Fault{{Pointer: findReference(doc, message), Message: "invalid schema: " + message}}
}

// referring are the members of a schema that name another one.
var referring = []string{"$ref", "$schema", "$dynamicRef", "$recursiveRef"}

// findReference is the JSON pointer of the reference that an error is about:
// the longest one that its text contains; "" when there is none.
func findReference(doc any, text string) string {
	found, length := "", 0
	var search func(pointer string, v any)
	search = func(pointer string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range referring {
				target, ok := v[name].(string)
				target, _, _ = strings.Cut(strings.TrimPrefix(target, "#"), "#")
				if at := pointer + "/" + name; ok && strings.Contains(text, target) && (len(target) > length || len(target) == length && at < found) {
					found, length = at, len(target)
				}
			}
			for name, member := range v {
				search(pointer+"/"+escapePointer(name), member)
			}
		case []any:
			for i, item := range v {
				search(pointer+"/"+strconv.Itoa(i), item)
			}
		}
	}
	search("", doc)
	return found
}
