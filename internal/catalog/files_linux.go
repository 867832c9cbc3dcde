package catalog

import (
	"io/fs"
	"syscall"
)

func stateOf(path string, info fs.FileInfo) fileState {
	s := fileState{path: path, size: info.Size(), modified: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		s.inode, s.changed = sys.Ino, sys.Ctim.Nano()
	}
	return s
}
