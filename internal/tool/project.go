package tool

// Project is one project of the catalogue.
type Project struct {
	ID                   string
	Disabled             bool
	ExecutionEnvironment Environment
	// HostSandboxPath is the host-side root; "" means /tmp/sandbox/<id>.
	HostSandboxPath string
	ReadOnly        bool
	Allow           Allow
	Isolation       Isolation
	// Protect are paths relative to the root that tools may only read.
	Protect     []string
	Env         map[string]string
	Defaults    Limits
	Maximum     Limits
	Concurrency int // maximum.concurrency: at most so many at once per worker; 0: no bound of its own
	Resources   []Resource
}

// Allow is what the operator allows in a project, whatever a request asks
// for. The zero value allows nothing; DefaultAllow is what a catalogue entry
// without the member gets.
type Allow struct {
	Environments []Environment
	Inline       AllowInline
	Tools        []string // names, or "*"
	Pools        []string // names, or "*"
}

// AllowInline is what the operator allows inline code to do.
type AllowInline struct {
	Enabled      bool
	Environments []Environment
	Writes       bool
	Network      bool
}

// DefaultAllow allows everything but the network to inline code.
func DefaultAllow() Allow {
	both := []Environment{Host, Container}
	return Allow{
		Environments: both,
		Inline:       AllowInline{Enabled: true, Environments: both, Writes: true},
		Tools:        []string{"*"},
		Pools:        []string{"*"},
	}
}

// ResourceType says how a container resource is reached.
type ResourceType string

// The resource types.
const (
	ContainerInstance    ResourceType = "container-instance"
	DevcontainerInstance ResourceType = "devcontainer-instance"
	DevcontainerFile     ResourceType = "devcontainer-file"
)

// DefaultWorkspaceFolder is the workspace root inside a container.
const DefaultWorkspaceFolder = "/workspace"

// Resource is a container resource linked to a project.
type Resource struct {
	Type            ResourceType
	ContainerID     string
	Image           string
	WorkspaceFolder string // never empty: DefaultWorkspaceFolder
	Path            string // devcontainer-file: below the project's root
	SHA256          string // devcontainer-file: of the file, lower-case hex
	Trusted         bool   // devcontainer-file: may run commands on the host
}
