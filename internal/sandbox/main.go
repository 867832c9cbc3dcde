package sandbox

import (
	"os"

	"github.com/toolworker/toolworker/internal/sandbox/shim"
)

// entries are the hidden programs of the worker's binary, by the name under
// which it executes itself.
var entries = map[string]func(){
	shim.Arg0: shim.Main,
	holdArg0:  hold,
}

// Main is the first call of every program, test binaries included, that makes
// a Runner: a Runner executes that program again, and Main is where it then
// goes another way and never returns. It returns at once when this is an
// ordinary start.
func Main() {
	if entry, ok := entries[os.Args[0]]; ok {
		entry()
	}
}
