package warm

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed spare.py
var spareSource string

// SpareReadyFD is the write end of a pipe that a spare closes when it waits
// for its request. Its other descriptors are those of a cold start.
const SpareReadyFD = 5

// Spare is the program of an interpreter that is started ahead of its one
// request, for python.Interpreter.Server.
func Spare(preload []string) (string, error) {
	if preload == nil {
		preload = []string{}
	}
	// A JSON list of strings is one of Python's as well.
	b, err := json.Marshal(preload)
	if err != nil {
		return "", fmt.Errorf("encode modules to preload: %w", err)
	}
	return "PRELOAD = " + string(b) + "\n" + spareSource, nil
}
