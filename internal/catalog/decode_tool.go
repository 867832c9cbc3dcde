package catalog

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// toolWire is a tool as it is written.
type toolWire struct {
	Description  string            `json:"description"`
	Enabled      *bool             `json:"enabled"`
	Source       string            `json:"source"`
	Command      []string          `json:"command"`
	Code         string            `json:"code"`
	InputSchema  jsontext.Value    `json:"input_schema"`
	OutputSchema jsontext.Value    `json:"output_schema"`
	Capability   tool.Capability   `json:"capability"`
	ToolEnv      string            `json:"tool_env"`
	Environments []string          `json:"environments"`
	Isolation    tool.Isolation    `json:"isolation"`
	Idempotent   *bool             `json:"idempotent"`
	Env          map[string]string `json:"env"`
	EnvFrom      []string          `json:"env_from"`
	Limits       boundsWire        `json:"limits"`
}

// boundsWire is limits and, beside them, how many run at once.
type boundsWire struct {
	tool.Limits
	Concurrency int `json:"concurrency"`
}

// sourceCustom is the only source that is served.
const sourceCustom = "custom"

func (e *entry) fillTool(w *toolWire, value any) []schemas.Fault {
	d := &tool.Definition{
		Name:          e.name,
		Description:   w.Description,
		Disabled:      w.Enabled != nil && !*w.Enabled,
		Source:        sourceCustom,
		Command:       w.Command,
		Code:          w.Code,
		InputSchema:   json.RawMessage(w.InputSchema),
		OutputSchema:  json.RawMessage(w.OutputSchema),
		Capability:    w.Capability,
		Isolation:     w.Isolation,
		NotIdempotent: w.Idempotent != nil && !*w.Idempotent,
		Env:           w.Env,
		EnvFrom:       w.EnvFrom,
		Limits:        w.Limits.Limits,
		Concurrency:   w.Limits.Concurrency,
	}
	e.tool, e.description = d, w.Description

	var faults []schemas.Fault
	if w.Source != "" && w.Source != sourceCustom {
		faults = append(faults, schemas.Fault{Pointer: "/source",
			Message: fmt.Sprintf("source %s is not supported: expected custom", quote(w.Source))})
	}
	if w.Code != "" && strings.TrimSpace(w.Code) == "" {
		faults = append(faults, schemas.Fault{Pointer: "/code", Message: "blank: expected Python source"})
	}
	var err error
	if d.ToolEnv, err = tool.ParseEnvironment(w.ToolEnv); err != nil {
		faults = append(faults, schemas.Fault{Pointer: "/tool_env", Message: err.Error()})
	}
	var more []schemas.Fault
	d.Environments, more = environments("/environments", w.Environments)
	faults = append(faults, more...)
	if w.Environments != nil && len(w.Environments) == 0 {
		faults = append(faults, schemas.Fault{Pointer: "/environments",
			Message: "empty: expected host or container; to switch the tool off say enabled: false"})
	}

	object, _ := value.(map[string]any)
	e.input, more = memberSchema(object, "input_schema")
	faults = append(faults, more...)
	e.output, more = memberSchema(object, "output_schema")
	return append(faults, more...)
}

// memberSchema compiles the JSON Schema in a member of a tool.
func memberSchema(object map[string]any, member string) (*Schema, []schemas.Fault) {
	doc, ok := object[member]
	if !ok {
		return nil, nil
	}
	s, faults := compileSchema(doc)
	for i := range faults {
		faults[i].Pointer = "/" + member + faults[i].Pointer
	}
	return s, faults
}

// environments parses a list of environments at pointer.
func environments(pointer string, names []string) ([]tool.Environment, []schemas.Fault) {
	var list []tool.Environment
	var faults []schemas.Fault
	for i, name := range names {
		env, err := tool.ParseEnvironment(name)
		if err == nil && env == "" {
			err = fmt.Errorf("%q: expected host or container", name)
		}
		if err != nil {
			faults = append(faults, schemas.Fault{Pointer: fmt.Sprintf("%s/%d", pointer, i), Message: err.Error()})
			continue
		}
		list = append(list, env)
	}
	return list, faults
}
