// Package devfile judges whether a devcontainer.json may be brought up
// although nobody vouches for it: whether all it can do stays inside the
// container that it describes.
package devfile

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// harmless are the members that act inside the container, or on nothing but
// an editor. What is not listed here needs trust: members are added to the
// format, and some of them give a container more of its host.
var harmless = map[string]bool{
	"$schema": true, "name": true, "image": true, "customizations": true, "settings": true, "extensions": true,
	"forwardPorts": true, "portsAttributes": true, "otherPortsAttributes": true,
	"remoteUser": true, "containerUser": true, "updateRemoteUserUID": true, "userEnvProbe": true,
	"containerEnv": true, "remoteEnv": true, "overrideCommand": true, "shutdownAction": true, "init": true,
	"workspaceFolder": true, "waitFor": true,
	"onCreateCommand": true, "updateContentCommand": true, "postCreateCommand": true, "postStartCommand": true, "postAttachCommand": true,
}

// buildMembers are the members of build that are harmless.
var buildMembers = map[string]bool{"dockerfile": true, "context": true, "args": true, "target": true, "cacheFrom": true}

// Check reports whether the configuration, which lies in dir below the
// project's root, can be brought up without trust. The error names every
// member that stands against it.
func Check(content []byte, dir string) error {
	plain, err := strip(content)
	if err != nil {
		return err
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(plain, &members); err != nil {
		return fmt.Errorf("it is no JSON with comments: %w", err)
	}
	var bad []string
	for name, value := range members {
		if !allowed(name, value, dir) {
			bad = append(bad, name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return fmt.Errorf("its %s can reach this machine: look at it, then say trusted: true in the catalogue", strings.Join(bad, ", "))
}

func allowed(name string, value jsontext.Value, dir string) bool {
	switch name {
	case "build":
		return localBuild(value, dir)
	case "dockerFile", "context":
		return localPath(value, dir)
	case "workspaceMount":
		return ownMount(value)
	}
	return harmless[name]
}

func localBuild(value jsontext.Value, dir string) bool {
	var members map[string]jsontext.Value
	if json.Unmarshal(value, &members) != nil {
		return false
	}
	for name, v := range members {
		if !buildMembers[name] {
			return false
		}
		if (name == "dockerfile" || name == "context") && !localPath(v, dir) {
			return false
		}
	}
	return true
}

// localPath reports whether a path, relative to dir, stays in the project.
func localPath(value jsontext.Value, dir string) bool {
	var p string
	if json.Unmarshal(value, &p) != nil || path.IsAbs(p) || strings.Contains(p, "$") {
		return false
	}
	joined := path.Join(dir, p)
	return joined != ".." && !strings.HasPrefix(joined, "../")
}

// ownMount reports whether a mount binds the project's directory and nothing else.
func ownMount(value jsontext.Value) bool {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return false
	}
	var source, kind string
	for field := range strings.SplitSeq(s, ",") {
		name, v, _ := strings.Cut(strings.TrimSpace(field), "=")
		switch name {
		case "source", "src":
			if source != "" {
				return false
			}
			source = v
		case "type":
			if kind != "" {
				return false
			}
			kind = v
		case "target", "dst", "destination", "consistency", "readonly", "ro":
		default:
			return false
		}
	}
	return source == "${localWorkspaceFolder}" && kind == "bind"
}
