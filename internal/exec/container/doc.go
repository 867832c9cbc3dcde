// Package container runs tools in the containers of their projects.
//
// A resource of a project leads to a container: one that exists, one that
// this worker makes from an image and removes again, or one that belongs to a
// devcontainer. Into it goes this worker's own binary, once, as an agent
// (package agent); every execution is then a few frames to that agent, which
// confines the tool, ends its whole process tree in time and says how it
// ended. Where no agent can run, a small supervisor written in shell takes its
// place, and the result's metadata say so.
//
// What goes wrong is sorted into three kinds: an *exec.Ending with a
// StartError when the container cannot run the tool, a *tool.Error when the
// catalogue's resource may not be used, and a *tool.Fault when the engine or
// the agent failed.
package container
