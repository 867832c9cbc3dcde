package agent

import (
	"archive/tar"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/toolworker/toolworker/internal/sandbox/removal"
)

// stage implements Stager: files lie in the agent's own directory, where runs
// may read them but not write.
func (c *commands) stage(key string, archive []byte) (string, error) {
	if _, err := hex.DecodeString(key); err != nil || key == "" {
		return "", fmt.Errorf("key %q: expected hex digits", key)
	}
	if c.tmp == "" {
		return "", errors.New("the container has no directory for temporary files")
	}
	final := filepath.Join(c.tmp, "staged-"+key)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	dir, err := os.MkdirTemp(c.tmp, "staging-")
	if err != nil {
		return "", err
	}
	if err := unpack(dir, archive); err != nil {
		removal.Tree(dir)
		return "", err
	}
	if err := os.Rename(dir, final); err != nil {
		removal.Tree(dir)
		if _, stat := os.Stat(final); stat == nil { // somebody was first
			return final, nil
		}
		return "", err
	}
	return final, nil
}

func unpack(dir string, archive []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack files: %w", err)
		}
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(h.Name), 0o755)
		case tar.TypeReg:
			err = unpackFile(root, h, r)
		default:
			err = fmt.Errorf("%s: neither a file nor a directory", h.Name)
		}
		if err != nil {
			return fmt.Errorf("unpack files: %w", err)
		}
	}
}

func unpackFile(root *os.Root, h *tar.Header, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(filepath.Clean(h.Name)), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode)&0o755|0o444)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}
