// Package catalog is the sample catalogue: tools for the files and texts of a
// project, two projects, and tools to try a worker with. The directory can be
// served as it is (worker run --catalog); programs carry it along.
package catalog

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Files are the entries (*.yaml) and the scripts beside them (*.py).
//
//go:embed *.yaml *.py
var Files embed.FS

// WriteTo writes the sample catalogue into a directory, which is made when it
// is not there. Files of the same name are replaced.
func WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make catalogue directory: %w", err)
	}
	names, err := fs.Glob(Files, "*")
	if err != nil {
		return fmt.Errorf("list sample catalogue: %w", err)
	}
	for _, name := range names {
		data, err := Files.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read sample catalogue: %w", err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write sample catalogue: %w", err)
		}
	}
	return nil
}
