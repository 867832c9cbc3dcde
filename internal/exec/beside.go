package exec

import (
	"os"
	"path/filepath"
)

// Python is the first argument that stands for the resolved interpreter.
const Python = "python3"

// Beside makes the relative files of a command absolute: those that lie in
// dir, the directory of its catalogue entry, which the tool sees as seen.
// Everything else is passed as it is written, and no shell sees it. moved says
// whether there was any.
func Beside(command []string, dir, seen string) (argv []string, moved bool) {
	argv = make([]string, len(command))
	for i, argument := range command {
		argv[i] = argument
		if dir == "" || !filepath.IsLocal(argument) || argument[0] == '-' || i == 0 && argument == Python {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, argument)); err == nil && info.Mode().IsRegular() {
			argv[i], moved = filepath.Join(seen, argument), true
		}
	}
	return argv, moved
}
