package catalog

import (
	"maps"
	"slices"

	"github.com/toolworker/toolworker/internal/tool"
)

// Kind is the kind of a catalogue entry.
type Kind string

// The kinds.
const (
	KindTool    Kind = "Tool"
	KindProject Kind = "Project"
)

// Snapshot is the catalogue at one moment. It never changes, and neither may
// what it hands out be changed: a request is served with the snapshot that it
// began with. The zero value is an empty catalogue.
type Snapshot struct {
	revision string
	tools    map[string]*entry
	projects map[string]*entry
	switches switches
}

// Revision names the state of the entries: a digest of a directory's, the
// number of the bucket's revision. It is "" for an empty catalogue.
func (s *Snapshot) Revision() string { return s.revision }

// Tool returns the tool of that name.
func (s *Snapshot) Tool(name string) (*tool.Definition, bool) {
	e, ok := s.tools[name]
	if !ok {
		return nil, false
	}
	return e.tool, true
}

// Project returns the project with that id.
func (s *Snapshot) Project(id string) (*tool.Project, bool) {
	e, ok := s.projects[id]
	if !ok {
		return nil, false
	}
	return e.project, true
}

// InputSchema is the compiled input_schema of a tool, nil when it has none.
// A nil Schema accepts everything.
func (s *Snapshot) InputSchema(toolName string) *Schema {
	if e, ok := s.tools[toolName]; ok {
		return e.input
	}
	return nil
}

// OutputSchema is the compiled output_schema of a tool, nil when it has none.
func (s *Snapshot) OutputSchema(toolName string) *Schema {
	if e, ok := s.tools[toolName]; ok {
		return e.output
	}
	return nil
}

// Summary is one line of a listing.
type Summary struct {
	Kind        Kind   `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitzero"`
	Enabled     bool   `json:"enabled"`
	// Place is where the entry was read: file and line, or key.
	Place string `json:"place"`
}

// List summarises the entries: tools, then projects, each by name.
func (s *Snapshot) List() []Summary {
	list := make([]Summary, 0, len(s.tools)+len(s.projects))
	for _, entries := range []map[string]*entry{s.tools, s.projects} {
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			list = append(list, entries[name].summary())
		}
	}
	return list
}

// With returns a snapshot that also has these projects, replacing those of
// the same id. It is for programs that make projects up, such as a demo on a
// temporary directory.
func (s *Snapshot) With(projects ...*tool.Project) *Snapshot {
	with := *s
	with.projects = maps.Clone(s.projects)
	if with.projects == nil {
		with.projects = map[string]*entry{}
	}
	for _, p := range projects {
		with.projects[p.ID] = &entry{kind: KindProject, name: p.ID, project: p, place: Place{File: "built in"}}
	}
	return &with
}

// ProjectsAt returns copies of the projects, by id, that have root as their
// host-side root: what With takes to serve them in another place.
func (s *Snapshot) ProjectsAt(root string) []*tool.Project {
	list := make([]*tool.Project, 0, len(s.projects))
	for _, id := range slices.Sorted(maps.Keys(s.projects)) {
		p := *s.projects[id].project
		p.HostSandboxPath = root
		list = append(list, &p)
	}
	return list
}

// has reports whether there is an entry of that kind and name.
func (s *Snapshot) has(kind Kind, name string) bool {
	_, ok := s.entries(kind)[name]
	return ok
}

func (s *Snapshot) entries(kind Kind) map[string]*entry {
	if kind == KindProject {
		return s.projects
	}
	return s.tools
}

// put adds an entry to a snapshot that is still being made.
func (s *Snapshot) put(e *entry) { s.entries(e.kind)[e.name] = e }

func newSnapshot() *Snapshot {
	return &Snapshot{tools: map[string]*entry{}, projects: map[string]*entry{}}
}
