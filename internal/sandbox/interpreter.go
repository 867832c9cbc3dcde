package sandbox

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/python"
)

// findTimeout bounds how long all candidates together may take to answer.
const findTimeout = 15 * time.Second

// FindInterpreter resolves the Python that a Runner uses. A name that is given
// is taken, or the reason why it cannot be. Otherwise the candidates are every
// python3 of PATH in turn, then those of /usr/local/bin and /usr/bin; the first
// one wins that another user could execute and read, because tools run under
// an identity of their own: a Python below a home directory of mode 0700 is
// taken only when there is no other. Scripts, which only look for the real one
// and take a tenth of a second for it, are asked last.
func FindInterpreter(ctx context.Context, name string) (*python.Interpreter, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	if name != "" {
		return python.Resolve(ctx, name)
	}
	var fallback *python.Interpreter
	errs := []error{errors.New("no python3 found: install Python 3.8 or later, or name one")}
	for _, file := range pythonCandidates() {
		i, err := python.Resolve(ctx, file)
		switch {
		case err != nil:
			errs = append(errs, err)
		case reachable(i):
			return i, nil
		case fallback == nil:
			fallback = i
		}
	}
	if fallback != nil {
		return fallback, nil
	}
	return nil, errors.Join(errs...)
}

// pythonCandidates are the files called python3, each once, scripts last.
func pythonCandidates() []string {
	var files, scripts []string
	seen := map[string]bool{}
	dirs := append(filepath.SplitList(os.Getenv("PATH")), "/usr/local/bin", "/usr/bin")
	for _, dir := range dirs {
		file := filepath.Join(dir, "python3")
		if !filepath.IsAbs(file) {
			continue
		}
		if _, err := exec.LookPath(file); err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err != nil || seen[real] {
			continue
		}
		seen[real] = true
		if isScript(real) {
			scripts = append(scripts, file)
		} else {
			files = append(files, file)
		}
	}
	return append(files, scripts...)
}

func isScript(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [2]byte
	_, err = io.ReadFull(f, magic[:])
	return err == nil && string(magic[:]) == "#!"
}

// reachable reports whether any user may execute the interpreter and read its
// library.
func reachable(i *python.Interpreter) bool {
	for _, p := range append([]string{i.Path}, i.Dirs...) {
		for ; ; p = filepath.Dir(p) {
			var st unix.Stat_t
			if err := unix.Stat(p, &st); err != nil || st.Mode&0o001 == 0 {
				return false
			}
			if p == "/" {
				break
			}
		}
	}
	return true
}
