package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolworker/toolworker/deploy/sample"
)

// module is the first line of this project's go.mod.
const module = "module github.com/toolworker/toolworker\n"

// The copy of a checkout is bounded: what is larger is not its source.
const (
	maxCopied     = 2000    // files
	maxCopiedSize = 1 << 20 // of one file, in bytes
)

// checkout is the root of this project's checkout that dir lies in; "" when
// it lies in none.
func checkout(dir string) string {
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte(module)) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// copyProject writes a project to work on into the directory to: a copy of
// the checkout that dir lies in, else the sample project. It says which.
func copyProject(dir, to string) (what string, err error) {
	root := checkout(dir)
	if root == "" {
		return "the sample project", sample.WriteTo(to)
	}
	n, err := copyTree(root, to)
	if err != nil {
		return "", fmt.Errorf("copy the checkout: %w", err)
	}
	return fmt.Sprintf("a copy of %d files of this checkout", n), nil
}

// copyTree copies the regular files of a tree, but for what is hidden, built or large.
func copyTree(from, to string) (copied int, err error) {
	err = filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil || rel == "." {
			return err
		}
		hidden := strings.HasPrefix(e.Name(), ".") || rel == "bin" || e.Name() == "node_modules"
		switch {
		case e.IsDir() && hidden:
			return fs.SkipDir
		case e.IsDir():
			return os.Mkdir(filepath.Join(to, rel), 0o755)
		case hidden || !e.Type().IsRegular():
			return nil
		case copied == maxCopied:
			return fs.SkipAll
		}
		if info, err := e.Info(); err != nil || info.Size() > maxCopiedSize {
			return ignoreVanished(err)
		}
		copied++
		return ignoreVanished(copyFile(path, filepath.Join(to, rel)))
	})
	return copied, err
}

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// ignoreVanished: somebody works in the checkout meanwhile.
func ignoreVanished(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
