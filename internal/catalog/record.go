package catalog

import (
	"fmt"

	"github.com/toolworker/toolworker/schemas"
)

// readRecord validates the value of a key, whoever wrote it.
func readRecord(key string, value []byte) (doc *document) {
	r, _ := refOf(key)
	doc = &document{kind: r.kind, name: r.name}
	refuse := func(format string, args ...any) *document {
		doc.faults = append(doc.faults, lineFault{reason: fmt.Sprintf(format, args...)})
		return doc
	}
	defer func() {
		if p := recover(); p != nil { // as in readDocument
			doc = refuse("cannot be read: %v", p)
		}
	}()
	if len(value) > maxDocument {
		return refuse("entry of %d bytes: expected at most %d", len(value), maxDocument)
	}
	parsed, err := schemas.Value(value)
	if err != nil {
		return refuse("invalid JSON: %v", err)
	}
	d := decode(parsed)
	for _, f := range d.faults {
		doc.faults = append(doc.faults, lineFault{reason: reasonOf(f)})
	}
	if len(doc.faults) == 0 && (d.kind != r.kind || d.name != r.name) {
		return refuse("the value is %s, expected %s", title(d.kind, d.name), title(r.kind, r.name))
	}
	if len(doc.faults) == 0 {
		doc.entry = d.entry
	}
	return doc
}
