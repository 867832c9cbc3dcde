package schemas

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Fault is one way in which a document violates a schema.
type Fault struct {
	// Pointer is the JSON pointer of the value at fault, or of the missing
	// member; "" is the document itself.
	Pointer string
	// Message says what the value is and what was expected.
	Message string
}

// String is the pointer and the message; the document itself is called "/".
func (f Fault) String() string { return pointerOrRoot(f.Pointer) + ": " + f.Message }

func pointerOrRoot(p string) string { return cmp.Or(p, "/") }

// Faults lists every fault in an error of [jsonschema.Schema.Validate], in
// the order of their pointers and without repetition. Any other error is one fault of the document
// itself; nil has none.
func Faults(err error) []Fault {
	if err == nil {
		return nil
	}
	var v *jsonschema.ValidationError
	if !errors.As(err, &v) {
		return []Fault{{Message: err.Error()}}
	}
	faults := leaves(nil, v)
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(faults)
}

// leaves appends the faults of e, which may only group others.
func leaves(faults []Fault, e *jsonschema.ValidationError) []Fault {
	at := pointer(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			faults = append(faults, Fault{at + "/" + EscapePointer(name), "missing, but required"})
		}
		return faults
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			faults = append(faults, Fault{at + "/" + EscapePointer(bound(name)), "unknown member"})
		}
		return faults
	case *kind.PropertyNames:
		// The library's location is not reliable here: it goes on to use the
		// slice that it reports.
		return append(faults, Fault{"", fmt.Sprintf("member name %s: expected one that propertyNames of the schema allows", show(k.Property))})
	case *kind.OneOf, *kind.AnyOf:
		return append(faults, Fault{at, alternatives(e)})
	}
	if len(e.Causes) == 0 {
		return append(faults, Fault{at, describe(e)})
	}
	for _, cause := range e.Causes {
		faults = leaves(faults, cause)
	}
	return faults
}

// alternatives describes a value that none, or more than one, of several
// schemas accepted: by the title of those schemas when they agree on one.
func alternatives(e *jsonschema.ValidationError) string {
	if title := titleAt(e.SchemaURL + "/oneOf/0"); title != "" {
		return "expected " + title
	}
	if title := titleAt(e.SchemaURL + "/anyOf/0"); title != "" {
		return "expected " + title
	}
	if k, ok := e.ErrorKind.(*kind.OneOf); ok && len(k.Subschemas) > 1 {
		return "more than one alternative of the schema accepts it, expected exactly one"
	}
	var parts []string
	for _, cause := range e.Causes {
		for _, f := range leaves(nil, cause) {
			parts = append(parts, f.String())
		}
	}
	return "no alternative of the schema accepts it: " + strings.Join(parts, "; or ")
}

// describe says what a single value is and what was expected.
func describe(e *jsonschema.ValidationError) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("is %s, expected %s", k.Got, expected(e.SchemaURL, strings.Join(k.Want, " or ")))
	case *kind.Pattern:
		return fmt.Sprintf("%s: expected %s", show(k.Got), expected(e.SchemaURL, "a match of "+k.Want))
	case *kind.Enum:
		return fmt.Sprintf("%s: expected %s", show(k.Got), expected(e.SchemaURL, "one of "+show(k.Want)))
	case *kind.Const:
		return fmt.Sprintf("%s: expected %s", show(k.Got), show(k.Want))
	case *kind.Format:
		return fmt.Sprintf("%s: expected %s", show(k.Got), expected(e.SchemaURL, "format "+k.Want))
	case *kind.Minimum:
		return fmt.Sprintf("%s: expected %s", showNumber(k.Got), expected(e.SchemaURL, "at least "+showNumber(k.Want)))
	case *kind.Maximum:
		return fmt.Sprintf("%s: expected %s", showNumber(k.Got), expected(e.SchemaURL, "at most "+showNumber(k.Want)))
	}
	if title := titleAt(e.SchemaURL); title != "" {
		return "expected " + title
	}
	return e.ErrorKind.LocalizedString(message.NewPrinter(language.English))
}

// expected is the title of one of our schemas, which says what it accepts,
// else what the keyword said.
func expected(schemaURL, otherwise string) string {
	return cmp.Or(titleAt(schemaURL), otherwise)
}

// show is a value as JSON, bounded in length.
func show(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return bound(fmt.Sprint(v))
	}
	return bound(string(data))
}

func showNumber(r *big.Rat) string {
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// maxShown bounds how much of a value or a name is repeated, in bytes.
const maxShown = 100

func bound(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}

func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(EscapePointer(t))
	}
	return b.String()
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// EscapePointer is a member name as a token of a JSON pointer.
func EscapePointer(token string) string { return escaper.Replace(token) }

// titleAt is the title of one of our schemas or subschemas; "" when it has
// none or the location is somebody else's.
func titleAt(location string) string {
	set, err := library()
	if err != nil {
		return ""
	}
	if plain, err := url.PathUnescape(location); err == nil {
		location = plain
	}
	return set.titles[location]
}

// titles are the titles of schemas and subschemas by location.
type titles map[string]string

func (t titles) collect(location string, doc any) {
	switch v := doc.(type) {
	case map[string]any:
		if title, ok := v["title"].(string); ok {
			t[location] = title
		}
		for name, member := range v {
			t.collect(location+"/"+EscapePointer(name), member)
		}
	case []any:
		for i, member := range v {
			t.collect(fmt.Sprintf("%s/%d", location, i), member)
		}
	}
}
