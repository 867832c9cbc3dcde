package python

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
)

// StubExit is the exit status of a process whose bootstrap did not arrive
// whole, or was compiled by another interpreter.
const StubExit = 97

// Program is Python that an interpreter has compiled: to start it takes a
// tenth of the time that its source would.
type Program struct {
	// Argv is the command, isolated from the environment and site packages.
	Argv []string
	// Prologue is to be written to RequestFD before anything else.
	Prologue []byte
}

var (
	//go:embed boot/stub.py
	stub string
	//go:embed boot/private.py
	privatePart string
	//go:embed boot/streams.py
	streamsPart string
	//go:embed boot/traces.py
	tracesPart string
	//go:embed boot/run.py
	runPart string
	//go:embed boot/value.py
	valuePart string
	//go:embed boot/cold.py
	coldPart string
)

// compiler reads a source and writes it as a prologue: version, length, code.
const compiler = `import marshal, sys
code = marshal.dumps(compile(sys.stdin.buffer.read(), 'toolworker', 'exec', 0, True))
sys.stdout.buffer.write(sys.hexversion.to_bytes(4, 'little') + len(code).to_bytes(4, 'little') + code)`

// Server compiles a process that runs requests in forks of itself: source is
// run after the parts of a cold start, in the same namespace, and may use what
// they define. RequestFD is its to read on from.
func (i *Interpreter) Server(ctx context.Context, source string) (*Program, error) {
	return i.compile(ctx, source)
}

// compile makes a program of the parts that all share, and of last. They run
// as one module, in a namespace and with builtins of its own, out of reach of
// the code.
func (i *Interpreter) compile(ctx context.Context, last string) (*Program, error) {
	parts := []string{privatePart, streamsPart, tracesPart, valuePart, runPart, last}
	source := []byte(strings.Join(parts, "\n"))
	prologue, err := i.run(ctx, []string{i.Path, "-I", "-S", "-c", compiler}, source)
	if err != nil {
		return nil, fmt.Errorf("compile bootstrap with interpreter %s: %w", i.Path, err)
	}
	return &Program{Argv: []string{i.Path, "-I", "-S", "-c", stub}, Prologue: prologue}, nil
}
