// Package exectest is the conformance suite of execution backends: what a
// tool and a planner may rely on wherever a tool runs. A backend's own test
// is then short: it makes a [Subject] and calls [Run].
//
// No test relies on a limit to keep the machine alive: each stays small by
// itself, for backends that do not hold the limit that it tries.
//
// Tools of the suite are Python and a few programs of every Unix system. That
// a tool left no process behind is checked by a file lock that the tool's
// processes share, and for commands also by a token in their environment that
// nothing else on the machine has.
package exectest
