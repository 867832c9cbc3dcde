package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// Interpreter is the Python that runs code, resolved once: what PATH holds may
// be a script that only looks for the real one, at every start.
type Interpreter struct {
	Path    string // absolute, symlinks resolved
	Version [2]int // 3, 11
	// Dirs are the directories that a start reads, absolute, resolved, none
	// below another: the prefix, and what of the standard library lies elsewhere.
	Dirs []string
	// Cold is the bootstrap of one request in a fresh process.
	Cold *Program

	run Command
}

// OldestVersion is the oldest Python that the bootstrap is written for.
var OldestVersion = [2]int{3, 8}

const describe = `import os, sys, json
real = os.path.realpath
dirs = [sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__)] + sys.path
print(json.dumps([real(sys.executable), sys.version_info[:2], sorted({real(d) for d in dirs if os.path.isdir(d)})]))`

// Descriptors of a cold start.
const (
	RequestFD = 3
	ValueFD   = 4
)

// Resolve finds the interpreter that name stands for, a path or a command of
// PATH, and has it compile the bootstrap. It fails when there is none, or it is older than OldestVersion.
func Resolve(ctx context.Context, name string) (*Interpreter, error) {
	return ResolveBy(ctx, name, runHere)
}

// Command runs a command with this stdin to its end and gives its stdout.
type Command func(ctx context.Context, argv []string, stdin []byte) ([]byte, error)

func runHere(ctx context.Context, argv []string, stdin []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}

// ResolveBy is Resolve for an interpreter that lives elsewhere, in a container
// for example: run is how its commands are run there.
func ResolveBy(ctx context.Context, name string, run Command) (*Interpreter, error) {
	out, err := run(ctx, []string{name, "-I", "-S", "-c", describe}, nil)
	if err != nil {
		return nil, fmt.Errorf("ask interpreter %s where it is: %w", name, err)
	}
	i := Interpreter{run: run}
	if err := json.Unmarshal(out, &[]any{&i.Path, &i.Version, &i.Dirs}); err != nil {
		return nil, fmt.Errorf("read answer of interpreter %s: %w", name, err)
	}
	if i.Path == "" || i.Version[0] != OldestVersion[0] || i.Version[1] < OldestVersion[1] {
		return nil, fmt.Errorf("interpreter %s is Python %d.%d: expected %d.%d or later",
			name, i.Version[0], i.Version[1], OldestVersion[0], OldestVersion[1])
	}
	i.Dirs = outermost(i.Dirs)
	if i.Cold, err = i.compile(ctx, coldPart); err != nil {
		return nil, err
	}
	return &i, nil
}

// outermost drops from sorted directories those that lie below another.
func outermost(dirs []string) []string {
	var kept []string
	for _, d := range dirs {
		if n := len(kept); n > 0 && (d == kept[n-1] || strings.HasPrefix(d, strings.TrimSuffix(kept[n-1], "/")+"/")) {
			continue
		}
		kept = append(kept, d)
	}
	return kept
}
