package catalog

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/toolworker/toolworker/schemas"
)

// document is one YAML document that has been read: an entry, or the reasons
// why it is none. It does not know where in its file it stood, so that it is
// parsed once however the text around it changes.
type document struct {
	kind   Kind
	name   string
	line   int // of the entry, relative to the chunk
	entry  *entry
	faults []lineFault
}

// lineFault is a fault with its line relative to the chunk.
type lineFault struct {
	line   int
	reason string
}

// readDocument parses and validates the text of one document of a file in
// dir. It returns nil for a document without content.
func readDocument(dir, text string) (doc *document) {
	// Parsers of foreign text have panicked on odd input before; that is a
	// fault of the document here, not the end of the worker.
	defer func() {
		if p := recover(); p != nil {
			doc = &document{faults: []lineFault{{reason: fmt.Sprintf("cannot be read: %v", p)}}}
		}
	}()
	c := chunk{line: 0, text: text}
	y, at, err := parseYAML(c)
	if err != nil {
		return &document{line: at, faults: []lineFault{{at, err.Error()}}}
	}
	if y == nil {
		return nil
	}
	d := decode(y.value)
	doc = &document{kind: d.kind, name: d.name, line: y.line(""), entry: d.entry}
	for _, f := range y.faults {
		d.add(f)
	}
	for _, f := range d.faults {
		doc.faults = append(doc.faults, lineFault{y.line(f.Pointer), reasonOf(f)})
	}
	if len(doc.faults) > 0 {
		doc.entry = nil
	}
	if doc.entry != nil && doc.entry.tool != nil {
		doc.entry.tool.Dir = dir
	}
	return doc
}

// reasonOf is a fault as a reason, which begins with its pointer; the document
// itself needs none.
func reasonOf(f schemas.Fault) string {
	if f.Pointer == "" {
		return f.Message
	}
	return printable(f.Pointer) + ": " + f.Message
}

// printable replaces control characters, which a name in a pointer may have:
// faults are read on terminals.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// at returns the entry as it stands in a file, the text of its document
// beginning at line.
func (d *document) at(file string, line int) *entry {
	e := *d.entry
	e.place = Place{file, line + d.line}
	return &e
}

// besides returns the entry with the directory of the files beside it.
func (e *entry) besides(dir string) *entry {
	if dir == "" || e.tool == nil {
		return e
	}
	d := *e.tool
	d.Dir = dir
	e.tool = &d
	return e
}

// faultsAt returns the faults as they stand in a file.
func (d *document) faultsAt(file string, line int) Faults {
	faults := make(Faults, len(d.faults))
	for i, f := range d.faults {
		entry := ""
		if d.name != "" {
			entry = title(d.kind, d.name)
		}
		faults[i] = Fault{Place: Place{file, line + f.line}, Entry: entry, Reason: f.reason}
	}
	return faults
}

// documentKey is what a document depends on.
type documentKey struct{ dir, text string }

func keyOf(file, text string) documentKey { return documentKey{filepath.Dir(file), text} }
