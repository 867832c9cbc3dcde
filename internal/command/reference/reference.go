// Package reference keeps the documents true: it writes the tables of flags
// from the command lines themselves, and tests that they stand in the
// documents.
package reference

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Flags is a table of the flags of a command, without those of the commands
// around it. path are the names of the command and its parents; none is the
// program itself.
func Flags(model *kong.Application, path ...string) (string, error) {
	node, err := find(model, path)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("| flag | variable | |\n|---|---|---|\n")
	for _, f := range node.Flags {
		if f.Name == "help" || f.Hidden {
			continue
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", written(f), strings.Join(f.Envs, "`, `"), cell(f.Help))
	}
	return b.String(), nil
}

// Commands is a table of all commands with their arguments.
func Commands(model *kong.Application) string {
	var b strings.Builder
	b.WriteString("| command | does |\n|---|---|\n")
	for _, leaf := range model.Leaves(true) {
		words := []string{model.Name}
		for n := leaf; n != nil && n.Type == kong.CommandNode; n = n.Parent {
			words = append(words[:1], append([]string{n.Name}, words[1:]...)...)
		}
		for _, arg := range leaf.Positional {
			words = append(words, arg.Summary())
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.Join(words, " "), cell(leaf.Help))
	}
	return b.String()
}

// Leaves are the paths of all commands, in their order.
func Leaves(model *kong.Application) [][]string {
	var paths [][]string
	for _, leaf := range model.Leaves(true) {
		var path []string
		for n := leaf; n != nil && n.Type == kong.CommandNode; n = n.Parent {
			path = append([]string{n.Name}, path...)
		}
		paths = append(paths, path)
	}
	return paths
}

func find(model *kong.Application, path []string) (*kong.Node, error) {
	node := model.Node
	for _, name := range path {
		var next *kong.Node
		for _, child := range node.Children {
			if child.Name == name {
				next = child
			}
		}
		if next == nil {
			return nil, fmt.Errorf("command %q: there is no %q", strings.Join(path, " "), name)
		}
		node = next
	}
	return node, nil
}

// written is a flag as it is written on a command line.
func written(f *kong.Flag) string {
	text := "`--" + f.Name
	if !f.IsBool() {
		text += " " + f.FormatPlaceHolder()
	}
	if f.Short != 0 {
		text = "`-" + string(f.Short) + "`, " + text
	}
	return text + "`"
}

// cell is text for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", "\\|"), "\n", " ")
}

// Variables lists the flags whose environment variable is not prefix and
// their own name.
func Variables(model *kong.Application, prefix string) []string {
	var wrong []string
	_ = kong.Visit(model, func(node kong.Visitable, next kong.Next) error {
		if f, ok := node.(*kong.Flag); ok && f.Name != "help" {
			want := prefix + "_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			if len(f.Envs) != 1 || f.Envs[0] != want {
				wrong = append(wrong, fmt.Sprintf("--%s has %v, expected %s", f.Name, f.Envs, want))
			}
		}
		return next(nil)
	})
	return wrong
}
