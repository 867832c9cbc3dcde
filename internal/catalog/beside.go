package catalog

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolworker/toolworker/internal/tool"
)

// maxCarried bounds a file that the bucket carries, in bytes.
const maxCarried = 512 << 10

// besideEntry returns the files that a tool's command names beside its entry,
// by slash-separated name, and what cannot be carried.
func besideEntry(d *tool.Definition) (map[string][]byte, error) {
	var files map[string][]byte
	for i, arg := range d.Command {
		// The interpreter is the worker's, and an option is no file.
		if !filepath.IsLocal(arg) || arg[0] == '-' || i == 0 && arg == "python3" {
			continue
		}
		path := filepath.Join(d.Dir, arg)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue // a word, or a file of the project
		}
		content, err := readCarried(path)
		if err != nil {
			return nil, fmt.Errorf("/command/%d: %w", i, err)
		}
		if files == nil {
			files = map[string][]byte{}
		}
		files[filepath.ToSlash(filepath.Clean(arg))] = content
	}
	return files, nil
}

func readCarried(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open file beside the entry: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxCarried+1))
	if err != nil {
		return nil, fmt.Errorf("read file beside the entry: %w", err)
	}
	if len(content) > maxCarried {
		return nil, fmt.Errorf("file beside the entry is larger than the %d bytes that the bucket carries", maxCarried)
	}
	return content, nil
}
