package host

import "github.com/toolworker/toolworker/internal/exec"

// argv is a command whose files lie beside its catalogue entry, in the
// directory beside, which the tool sees where it is.
func argv(command []string, beside string) []string {
	absolute, _ := exec.Beside(command, beside, beside)
	return absolute
}
