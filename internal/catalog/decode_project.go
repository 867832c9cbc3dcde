package catalog

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

// projectWire is a project as it is written.
type projectWire struct {
	Description          string            `json:"description"`
	Enabled              *bool             `json:"enabled"`
	ExecutionEnvironment string            `json:"execution_environment"`
	HostSandboxPath      string            `json:"host_sandbox_path"`
	ReadOnly             bool              `json:"read_only"`
	Allow                allowWire         `json:"allow"`
	Isolation            tool.Isolation    `json:"isolation"`
	Protect              []string          `json:"protect"`
	Env                  map[string]string `json:"env"`
	Defaults             tool.Limits       `json:"defaults"`
	Maximum              boundsWire        `json:"maximum"`
	Resources            []resourceWire    `json:"resources"`
}

// allowWire has pointers where an absent member means something else than an
// empty one: absent is the default, an empty list allows nothing.
type allowWire struct {
	Environments *[]string `json:"environments"`
	Inline       struct {
		Enabled      *bool     `json:"enabled"`
		Environments *[]string `json:"environments"`
		Writes       *bool     `json:"writes"`
		Network      *bool     `json:"network"`
	} `json:"inline"`
	Tools *[]string `json:"tools"`
	Pools *[]string `json:"pools"`
}

type resourceWire struct {
	Type            tool.ResourceType `json:"type"`
	ContainerID     string            `json:"container_id"`
	Image           string            `json:"image"`
	WorkspaceFolder string            `json:"workspace_folder"`
	Path            string            `json:"path"`
	SHA256          string            `json:"sha256"`
	Trusted         bool              `json:"trusted"`
}

func (e *entry) fillProject(w *projectWire) []schemas.Fault {
	p := &tool.Project{
		ID:              e.name,
		Disabled:        w.Enabled != nil && !*w.Enabled,
		HostSandboxPath: w.HostSandboxPath,
		ReadOnly:        w.ReadOnly,
		Isolation:       w.Isolation,
		Protect:         w.Protect,
		Env:             w.Env,
		Defaults:        w.Defaults,
		Maximum:         w.Maximum.Limits,
		Concurrency:     w.Maximum.Concurrency,
	}
	e.project, e.description = p, w.Description

	var faults []schemas.Fault
	fault := func(pointer, format string, args ...any) {
		faults = append(faults, schemas.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
	var err error
	if p.ExecutionEnvironment, err = tool.ParseEnvironment(w.ExecutionEnvironment); err != nil {
		fault("/execution_environment", "%v", err)
	}
	if w.HostSandboxPath != "" && !isRoot(w.HostSandboxPath) {
		fault("/host_sandbox_path", "%q: expected an absolute, clean path that is not the root of all", w.HostSandboxPath)
	}
	for i, rel := range w.Protect {
		if !isBelow(rel) {
			fault(fmt.Sprintf("/protect/%d", i), "%q: expected a clean path below the project's root", rel)
		}
	}
	var more []schemas.Fault
	p.Allow, more = w.Allow.allow()
	faults = append(faults, more...)
	for i, r := range w.Resources {
		resource, member, problem := r.resource()
		if problem != "" {
			fault(fmt.Sprintf("/resources/%d/%s", i, member), "%s", problem)
		}
		p.Resources = append(p.Resources, resource)
	}
	return faults
}

// allow is what is written, with the default where nothing is.
func (w *allowWire) allow() (tool.Allow, []schemas.Fault) {
	a := tool.DefaultAllow()
	var faults, more []schemas.Fault
	if w.Environments != nil {
		a.Environments, faults = environments("/allow/environments", *w.Environments)
	}
	if w.Inline.Environments != nil {
		a.Inline.Environments, more = environments("/allow/inline/environments", *w.Inline.Environments)
		faults = append(faults, more...)
	}
	for to, from := range map[*bool]*bool{
		&a.Inline.Enabled: w.Inline.Enabled,
		&a.Inline.Writes:  w.Inline.Writes,
		&a.Inline.Network: w.Inline.Network,
	} {
		if from != nil {
			*to = *from
		}
	}
	if w.Tools != nil {
		a.Tools = *w.Tools
	}
	if w.Pools != nil {
		a.Pools = *w.Pools
	}
	return a, faults
}

// resource returns a container resource, and what is wrong with which member.
func (w *resourceWire) resource() (r tool.Resource, member, problem string) {
	r = tool.Resource{
		Type:            w.Type,
		ContainerID:     w.ContainerID,
		Image:           w.Image,
		WorkspaceFolder: w.WorkspaceFolder,
		Path:            w.Path,
		SHA256:          strings.ToLower(w.SHA256),
		Trusted:         w.Trusted,
	}
	if r.WorkspaceFolder == "" {
		r.WorkspaceFolder = tool.DefaultWorkspaceFolder
	}
	switch {
	case !isRoot(r.WorkspaceFolder):
		return r, "workspace_folder", fmt.Sprintf("%q: expected an absolute, clean path that is not the root of all", r.WorkspaceFolder)
	case r.Path != "" && !isBelow(r.Path):
		return r, "path", fmt.Sprintf("%q: expected a clean path below the project's root", r.Path)
	}
	return r, "", ""
}

// isRoot reports whether s can be the root of a project: absolute, clean, and
// not "/", below which everything would lie.
func isRoot(s string) bool {
	return path.IsAbs(s) && path.Clean(s) == s && s != "/"
}

// isBelow reports whether s is a clean relative path that leads below where
// it starts.
func isBelow(s string) bool {
	return filepath.IsLocal(s) && path.Clean(s) == s && s != "."
}
