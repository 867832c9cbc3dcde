// Package sample is a small project for the demonstration to work on where
// there is none.
package sample

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// files are the project's. Those that Go's tools would take for this
// project's own carry one more ending.
//
//go:embed project
var files embed.FS

const cover = ".txt"

// WriteTo writes the project into a directory, which must not have its files yet.
func WriteTo(dir string) error {
	err := fs.WalkDir(files, "project", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(dir, strings.TrimSuffix(e.Name(), cover)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return err
		}
		if _, err := f.Write(text); err != nil {
			_ = f.Close()
			return err
		}
		return f.Close()
	})
	if err != nil {
		return fmt.Errorf("write sample project: %w", err)
	}
	return nil
}
