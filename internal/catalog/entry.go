package catalog

import (
	"strconv"

	"github.com/toolworker/toolworker/internal/tool"
)

// entry is one validated tool or project.
type entry struct {
	kind        Kind
	name        string
	description string
	place       Place

	tool          *tool.Definition // KindTool
	input, output *Schema

	project *tool.Project // KindProject

	// json is the entry as it is kept in the bucket.
	json []byte
}

// title is how faults call an entry.
func title(kind Kind, name string) string {
	switch kind {
	case KindTool:
		return "tool " + strconv.Quote(name)
	case KindProject:
		return "project " + strconv.Quote(name)
	}
	return ""
}

func (e *entry) summary() Summary {
	s := Summary{Kind: e.kind, Name: e.name, Description: e.description, Place: e.place.String()}
	switch e.kind {
	case KindTool:
		s.Enabled = !e.tool.Disabled
	case KindProject:
		s.Enabled = !e.project.Disabled
	}
	return s
}
