package python

import (
	_ "embed"
	"strings"
)

// Descriptors of a cold start.
const (
	RequestFD = 3
	ValueFD   = 4
)

var (
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

// Cold is the program of a cold start, for python3 -c.
var Cold = program(common(), strip(coldPart))

// Server returns the program of a process that runs requests in forks of
// itself: loop is Python source that is run after the parts of a cold start,
// may use what they define, and has the encoder of values compiled already.
func Server(loop string) string {
	return program(common(), "encoder()\n", strip(loop))
}

// Argv is the command that runs a program with the interpreter at that path,
// isolated from the environment and from site packages.
func Argv(interpreter, program string) []string {
	return []string{interpreter, "-I", "-S", "-c", program}
}

func common() string {
	var value strings.Builder
	value.WriteString("VALUE_SOURCE = ")
	quote(&value, strip(valuePart))
	value.WriteByte('\n')
	return strip(privatePart) + strip(streamsPart) + strip(tracesPart) + strip(runPart) + value.String()
}
