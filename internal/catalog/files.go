package catalog

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFile bounds a file of the catalogue, in bytes.
const maxFile = 64 << 20

// fileState is what tells one state of a file from another without reading it.
type fileState struct {
	path     string
	size     int64
	modified time.Time
	inode    uint64
	changed  int64 // inode change time in ns, which cannot be set back
}

// findFiles lists the YAML files (*.yaml, *.yml) below dir in the order of
// their paths. Names that begin with a dot are left out; links to files are
// followed, links to directories are not, so that there is no loop.
func findFiles(dir string) ([]fileState, error) {
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find catalogue directory: %w", err)
	}
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, fmt.Errorf("find catalogue directory: %w", err)
	}
	var files []fileState
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != root && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if ext := filepath.Ext(path); ext != ".yaml" && ext != ".yml" {
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			// A dangling link, or a file that was removed meanwhile: reading
			// it says which, as a fault of that file.
			if d.IsDir() {
				return nil
			}
			files = append(files, fileState{path: path})
			return nil
		}
		files = append(files, stateOf(path, info))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read catalogue directory: %w", err)
	}
	return files, nil
}

// unchanged reports whether two listings describe the same files.
func unchanged(a, b []fileState) bool {
	return slices.EqualFunc(a, b, func(x, y fileState) bool {
		return x.path == y.path && x.size == y.size && x.inode == y.inode &&
			x.changed == y.changed && x.modified.Equal(y.modified)
	})
}

// readFile reads a file of the catalogue. It never blocks on what is no
// regular file.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open catalogue file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("open catalogue file: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open catalogue file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read catalogue file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("read catalogue file: %s is larger than %d bytes", path, maxFile)
	}
	return data, nil
}
