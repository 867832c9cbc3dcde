package command

import (
	"runtime/debug"

	"github.com/toolworker/toolworker/internal/tool"
)

// Name is a flag or argument that must be a single subject token.
type Name string

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *Name) UnmarshalText(text []byte) error {
	*n = Name(text)
	return tool.CheckName("name", string(text))
}

// Names are Name values as strings.
func Names(names []Name) []string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return list
}

// Version is the version of the programs: that of the module they were built
// from, with the revision where it is known.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if version == "" || version == "(devel)" {
		version = "devel"
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				version += "-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return version
}
