package schemas

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// samplesDir holds a sample's request as NN-name.request.json and what its
// result must be as NN-name.expect.json, a JSON Schema.
const samplesDir = "examples/demo"

// Sample is a request to try a worker with. Its projects are demo and, read-only,
// demo-locked; its tools are those of the sample catalogue.
type Sample struct {
	Name  string // NN-name
	Title string // what happens, in a few words
	// Request is the data of a request, or a whole event.
	Request []byte

	expect *jsonschema.Schema
}

// Samples are the sample requests, in the order of their names.
func Samples() ([]Sample, error) {
	const suffix = ".request.json"
	names, err := fs.Glob(Files, samplesDir+"/*"+suffix)
	if err != nil {
		return nil, fmt.Errorf("list samples: %w", err)
	}
	samples := make([]Sample, 0, len(names))
	for _, name := range names {
		request, err := Files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read sample: %w", err)
		}
		expect, err := compileFile(strings.TrimSuffix(name, suffix) + ".expect.json")
		if err != nil {
			return nil, err
		}
		samples = append(samples, Sample{
			Name: strings.TrimSuffix(path.Base(name), suffix), Title: expect.Title, Request: request, expect: expect,
		})
	}
	return samples, nil
}

// Judge lists how a result, the data of its event, differs from what the
// sample says; nothing when it ended as it should.
func (s Sample) Judge(result []byte) []Fault {
	v, err := Value(result)
	if err != nil {
		return []Fault{{Message: err.Error()}}
	}
	return Faults(s.expect.Validate(v))
}

// compileFile compiles a schema that stands alone.
func compileFile(name string) (*jsonschema.Schema, error) {
	data, err := Files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	doc, err := Value(data)
	if err != nil {
		return nil, fmt.Errorf("parse schema %s: %w", name, err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(nothing{})
	if err := c.AddResource(base+name, doc); err != nil {
		return nil, fmt.Errorf("add schema %s: %w", name, err)
	}
	s, err := c.Compile(base + name)
	if err != nil {
		return nil, fmt.Errorf("compile schema %s: %w", name, err)
	}
	return s, nil
}
