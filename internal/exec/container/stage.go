package container

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/tool"
)

// Bounds of what lies beside a catalogue entry and is brought into containers.
const (
	maxStaged      = 16 << 20 // bytes
	maxStagedFiles = 2000
)

// errTooMuch ends the walk over a directory that is not brought as a whole.
var errTooMuch = errors.New("too much")

// staged remembers what of the catalogue is in a container already.
type staged struct {
	mu   sync.Mutex
	dirs map[string]stagedDir // by the directory on the host
}

type stagedDir struct {
	stamp  string // what the directory looked like
	looked time.Time
	inside string
}

// bring sees to it that the files beside the task's catalogue entry are in the
// container, and returns the command that names them there and their directory,
// "" when it needs none.
func (s *agentSession) bring(ctx context.Context, t *exec.Task) (argv []string, dir string, err error) {
	if t.Definition == nil || t.Definition.Dir == "" || len(t.Argv) == 0 {
		return t.Argv, "", nil
	}
	beside := t.Definition.Dir
	if _, needed := exec.Beside(t.Argv, beside, beside); !needed {
		return t.Argv, "", nil
	}
	inside, err := s.stage(ctx, beside, t.Argv)
	var f *tool.Fault
	if err != nil && !errors.As(err, &f) {
		err = unusablef("bring the files of the catalogue entry into the container: %v", err)
	}
	if err != nil {
		return nil, "", err
	}
	argv, _ = exec.Beside(t.Argv, beside, inside)
	return argv, inside, nil
}

func (s *agentSession) stage(ctx context.Context, dir string, argv []string) (string, error) {
	s.staged.mu.Lock()
	last, known := s.staged.dirs[dir]
	s.staged.mu.Unlock()
	if known && time.Since(last.looked) < freshness {
		return last.inside, nil
	}
	files, stamp, err := survey(dir, argv)
	if err != nil {
		return "", err
	}
	now := stagedDir{stamp: stamp, looked: time.Now(), inside: last.inside}
	if !known || last.stamp != stamp {
		archive, err := pack(dir, files)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(archive)
		if now.inside, err = s.Stage(ctx, hex.EncodeToString(sum[:16]), archive); err != nil {
			return "", err
		}
	}
	s.staged.mu.Lock()
	defer s.staged.mu.Unlock()
	if s.staged.dirs == nil {
		s.staged.dirs = make(map[string]stagedDir)
	}
	s.staged.dirs[dir] = now
	return now.inside, nil
}

// survey lists the regular files below dir, relative to it, and what tells
// them from other versions of themselves. Of a directory with too much in it
// only the files that the command names are listed.
func survey(dir string, argv []string) (files []string, stamp string, err error) {
	sum := sha256.New()
	var size int64
	add := func(rel string, info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return nil
		}
		if size += info.Size(); size > maxStaged || len(files) >= maxStagedFiles {
			return errTooMuch
		}
		files = append(files, rel)
		fmt.Fprintf(sum, "%s\x00%d %d %o\x00", rel, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return add(rel, info)
	})
	if errors.Is(err, errTooMuch) {
		files, size = nil, 0
		sum.Reset()
		err = nil
		for _, a := range argv {
			if info, statErr := os.Lstat(filepath.Join(dir, a)); filepath.IsLocal(a) && statErr == nil && err == nil {
				err = add(filepath.Clean(a), info)
			}
		}
	}
	return files, hex.EncodeToString(sum.Sum(nil)), err
}

// pack writes files as a tar that is the same for the same contents.
func pack(dir string, files []string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, rel := range files {
		path := filepath.Join(dir, rel)
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()), Size: int64(len(content))}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
