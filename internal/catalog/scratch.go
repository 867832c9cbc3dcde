package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
)

// fileSet are the files that lie beside an entry: digest by slash-separated
// name. Their content is under filePrefix and the digest in the bucket.
type fileSet map[string]string

// filePrefix is what the keys of files begin with: file.<sha256, lower-case
// hex>. The content under such a key never changes.
const filePrefix = "file."

// scratch is a directory where the files of entries of a bucket are put, so
// that they lie beside their entry as they do in a catalogue directory. Equal
// sets share one directory, which never changes once it is there: what runs
// from it is not disturbed by a reload.
type scratch struct {
	mu     sync.Mutex
	root   string // made when it is first needed
	placed map[string]string
	closed bool
}

// place returns the directory that has the files of a set.
func (s *scratch) place(ctx context.Context, kv jetstream.KeyValue, files fileSet) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return "", errors.New("the catalogue is not followed any more")
	}
	id := files.id()
	if dir, ok := s.placed[id]; ok {
		return dir, nil
	}
	if s.root == "" {
		root, err := os.MkdirTemp("", "toolworker-catalogue-")
		if err != nil {
			return "", fmt.Errorf("make directory for files of the catalogue: %w", err)
		}
		s.root, s.placed = root, map[string]string{}
		// Tools run as somebody else, who must get through.
		if err := os.Chmod(root, 0o755); err != nil {
			return "", fmt.Errorf("open directory for files of the catalogue: %w", err)
		}
	}
	dir := filepath.Join(s.root, id)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := readContent(ctx, kv, files[name])
		if err == nil {
			err = writeBeside(dir, name, content)
		}
		if err != nil {
			_ = os.RemoveAll(dir) // half of a set is of no use
			return "", err
		}
	}
	s.placed[id] = dir
	return dir, nil
}

// close removes everything, for good.
func (s *scratch) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.root != "" {
		_ = os.RemoveAll(s.root)
	}
}

// id names a set by its names and contents.
func (f fileSet) id() string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		h.Write(fmt.Appendf(nil, "%q %s\n", name, f[name]))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// errFile: a file of the bucket is not what its entry says.
var errFile = errors.New("apply its entry again")

func readContent(ctx context.Context, kv jetstream.KeyValue, digest string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	e, err := kv.Get(ctx, filePrefix+digest)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrInvalidKey):
		return nil, fmt.Errorf("file %s is not in the bucket: %w", digest, errFile)
	case err != nil:
		return nil, fmt.Errorf("read file %s of bucket %s: %w", digest, kv.Bucket(), err)
	case digestOf(e.Value()) != digest:
		return nil, fmt.Errorf("file %s has other content: %w", digest, errFile)
	}
	return e.Value(), nil
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// writeBeside writes a file below dir, which nobody else writes to. Tools run
// as somebody else, so that the modes do not depend on the worker's umask.
func writeBeside(dir, name string, content []byte) error {
	if !isBelow(name) {
		return fmt.Errorf("file %q is not beside its entry: %w", name, errFile)
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	parent := filepath.Dir(path)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("make directory for files of the catalogue: %w", err)
	}
	for at := parent; ; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			return fmt.Errorf("open directory for files of the catalogue: %w", err)
		}
		if at == dir {
			break
		}
	}
	if err := os.WriteFile(path, content, 0o555); err != nil {
		return fmt.Errorf("write file of the catalogue: %w", err)
	}
	if err := os.Chmod(path, 0o555); err != nil {
		return fmt.Errorf("open file of the catalogue: %w", err)
	}
	return nil
}
