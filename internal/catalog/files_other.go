//go:build !linux

package catalog

import "io/fs"

func stateOf(path string, info fs.FileInfo) fileState {
	return fileState{path: path, size: info.Size(), modified: info.ModTime()}
}
