package sandbox

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/toolworker/toolworker/internal/tool"
)

// Config says how a Runner confines what it runs. The zero value is a good one.
type Config struct {
	// Require is the weakest level accepted. "" takes the strongest that the
	// machine can do, but never none; none is taken only when it is asked for.
	Require tool.Isolation
	// Level forces one level, "" takes the strongest.
	Level tool.Isolation
	// Interpreter is the Python of inline code and of commands that begin
	// with "python3": a path or a name, "" chooses by the rule of FindInterpreter.
	Interpreter string
	// Executable is the binary that calls Main, by default this process's own.
	Executable string
	// TmpBytes and TmpFiles bound a tool's own /tmp at level full, TmpBytes
	// its /dev/shm as well: 64 MiB and 4096 files by default.
	TmpBytes, TmpFiles int64
	// Warm says how Python is kept ready; WarmFork by default.
	Warm Warm
	// WarmSlots bounds how many processes are kept ready, 16 for each CPU by
	// default. There are fewer where memory is short.
	WarmSlots int
	// Preload are the modules that Python has imported when a run starts
	// warm; nil means DefaultPreload.
	Preload []string
	// Log receives what an operator should know; nil discards it.
	Log *slog.Logger
}

// WithDefaults returns c with every unset member that has a default set.
func (c Config) WithDefaults() Config {
	c.Executable = cmp.Or(c.Executable, "/proc/self/exe")
	c.Warm = cmp.Or(c.Warm, WarmFork)
	if c.Preload == nil {
		c.Preload = DefaultPreload()
	}
	c.TmpBytes = cmp.Or(c.TmpBytes, 64<<20)
	c.TmpFiles = cmp.Or(c.TmpFiles, 4096)
	if c.Level == "" && c.Require == tool.IsolationNone {
		c.Level = tool.IsolationNone
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	if _, err := tool.ParseIsolation(string(c.Require)); err != nil {
		return fmt.Errorf("require isolation %w", err)
	}
	if _, err := tool.ParseIsolation(string(c.Level)); err != nil {
		return fmt.Errorf("isolation level %w", err)
	}
	if c.Level != "" && !c.Level.AtLeast(c.Require) {
		return fmt.Errorf("isolation level %q is below the required %q", c.Level, c.Require)
	}
	if c.TmpBytes < 4096 || c.TmpFiles < 1 {
		return fmt.Errorf("size of /tmp %d bytes, %d files: expected at least 4096 and 1", c.TmpBytes, c.TmpFiles)
	}
	if _, err := ParseWarm(string(c.Warm)); err != nil {
		return fmt.Errorf("warm start %w", err)
	}
	if c.WarmSlots < 0 {
		return fmt.Errorf("warm slots %d: expected 0 or more", c.WarmSlots)
	}
	if !filepath.IsAbs(c.Executable) {
		return fmt.Errorf("executable %q: expected an absolute path", c.Executable)
	}
	return nil
}
