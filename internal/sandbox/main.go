package sandbox

import "os"

// entries are hidden programs of the worker's binary, by the name under which
// it executes itself. The supervisor of a tool is another: package shim takes
// its turn before main.
var entries = map[string]func(){
	holdArg0: hold,
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
