package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// Schema is a compiled input_schema or output_schema. It is safe for
// concurrent use; a nil Schema accepts everything.
type Schema struct{ compiled *jsonschema.Schema }

// schemaAddress is the address of the schema being compiled: its relative
// references are resolved against it.
const (
	schemaBase    = "toolworker://catalogue"
	schemaAddress = schemaBase + "/schema"
)

// compileSchema compiles a parsed JSON Schema, 2020-12 unless it says
// otherwise. References may lead to the schema itself and to the
// meta-schemas that the compiler brings along; nothing is ever loaded from a
// file or the network. The pointers of the faults lead into the schema.
func compileSchema(doc any) (*Schema, []schemas.Fault) {
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(schemaAddress, doc); err != nil {
		return nil, []schemas.Fault{{Message: err.Error()}}
	}
	compiled, err := c.Compile(schemaAddress)
	if err != nil {
		return nil, schemaFaults(doc, err)
	}
	return &Schema{compiled}, nil
}

// nothing is a loader that refuses.
type nothing struct{}

func (nothing) Load(string) (any, error) {
	return nil, errors.New("schemas are never loaded from elsewhere")
}

// CheckInput reports an input that violates the schema as invalid_input, with
// every violation and its JSON pointer.
func (s *Schema) CheckInput(input json.RawMessage) *tool.Error {
	return s.check(tool.InvalidInput, "input", input)
}

// CheckOutput reports an output that violates the schema as invalid_output,
// with every violation and its JSON pointer. One that is not a strict JSON
// document violates every schema.
func (s *Schema) CheckOutput(output []byte) *tool.Error {
	return s.check(tool.InvalidOutput, "output", output)
}

func (s *Schema) check(code tool.Code, what string, doc []byte) *tool.Error {
	if s == nil {
		return nil
	}
	value, err := schemas.Value(doc)
	if err != nil {
		return tool.Errorf(code, "%s is not one strict JSON document: %v", what, err)
	}
	faults := schemas.Faults(s.compiled.Validate(value))
	if len(faults) == 0 {
		return nil
	}
	return tool.Errorf(code, "%s violates %s_schema: %s", what, what, listFaults(faults))
}

// maxFaultText bounds the text of all violations together, in bytes: the
// error travels in the result, which cannot move it elsewhere.
const maxFaultText = 16 << 10

func listFaults(faults []schemas.Fault) string {
	var b strings.Builder
	for i, f := range faults {
		text := f.String()
		if i > 0 && b.Len()+len(text) > maxFaultText {
			fmt.Fprintf(&b, "; and %d more", len(faults)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(text)
	}
	return b.String()
}
