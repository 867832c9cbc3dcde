// Package schemas holds the normative form of what travels between planners,
// operators and workers: JSON Schemas (2020-12), the AsyncAPI document and
// examples. They are embedded, so that programs and tests use the very files.
package schemas

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Files are the schemas (*.schema.json), asyncapi.yaml and examples/.
//
//go:embed *.schema.json asyncapi.yaml examples
var Files embed.FS

// The schemas, by file name.
const (
	Tool         = "tool.schema.json"     // a tool of the catalogue
	Project      = "project.schema.json"  // a project of the catalogue
	Request      = "request.schema.json"  // the data of a request
	Result       = "result.schema.json"   // the data of a result
	Started      = "started.schema.json"  // the data of a live event
	Output       = "output.schema.json"   // the data of a live event
	Retrying     = "retrying.schema.json" // the data of a live event
	Event        = "event.schema.json"    // what all events have in common
	RequestEvent = "request-event.schema.json"
	ResultEvent  = "result-event.schema.json"
	LiveEvent    = "live-event.schema.json"  // started, output and retrying
	DeadLetter   = "dead-letter.schema.json" // the headers of a dead letter
)

// base is the address that the schemas' $id begin with.
const base = "https://toolworker.dev/schemas/v1/"

// library is every schema of Files, read once; its schemas share definitions.
var library = sync.OnceValues(load)

type schemaSet struct {
	titles titles

	mu       sync.Mutex // guards what follows: a compiler is for one at a time
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// Compile returns the compiled schema of a file of Files, such as Tool, or a
// part of one (common.schema.json#/$defs/name). It is safe for concurrent use, and so is what it returns. Formats are
// asserted. What is validated has the types that Value gives; those that a
// YAML decoder gives (map[string]any, []any, string, bool, nil and any number
// type) do as well.
func Compile(name string) (*jsonschema.Schema, error) {
	set, err := library()
	if err != nil {
		return nil, err
	}
	set.mu.Lock()
	defer set.mu.Unlock()
	if s := set.compiled[name]; s != nil {
		return s, nil
	}
	s, err := set.compiler.Compile(base + name)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	set.compiled[name] = s
	return s, nil
}

// load gives every schema of Files to the compiler, which reads nothing else.
func load() (*schemaSet, error) {
	names, err := fs.Glob(Files, "*.schema.json")
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.UseLoader(nothing{})
	t := titles{}
	for _, name := range names {
		data, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read schema %s: %w", name, err)
		}
		doc, err := Value(data)
		if err != nil {
			return nil, fmt.Errorf("parse schema %s: %w", name, err)
		}
		if err := c.AddResource(base+name, doc); err != nil {
			return nil, fmt.Errorf("add schema %s: %w", name, err)
		}
		t.collect(base+name+"#", doc)
	}
	return &schemaSet{titles: t, compiler: c, compiled: map[string]*jsonschema.Schema{}}, nil
}

// nothing is a loader that refuses: no schema is fetched from anywhere.
type nothing struct{}

func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s is not a schema of this package", path.Base(url))
}
