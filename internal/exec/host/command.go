package host

import (
	"os"
	"path/filepath"
)

// python is the argument that stands for the worker's resolved interpreter.
const python = "python3"

// argv makes the relative files of a command absolute: those that lie beside
// its catalogue entry, in the directory beside. Everything else is passed as
// it is written, and no shell sees it.
func argv(command []string, beside string) []string {
	absolute := make([]string, len(command))
	for i, argument := range command {
		absolute[i] = argument
		if beside == "" || !filepath.IsLocal(argument) || argument[0] == '-' || i == 0 && argument == python {
			continue
		}
		file := filepath.Join(beside, argument)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			absolute[i] = file
		}
	}
	return absolute
}
