package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
)

//go:embed python.sh
var pythonScript string

type imageSet struct {
	mu    sync.Mutex
	names map[string]string
}

var images = imageSet{names: make(map[string]string)}

func (s *imageSet) made() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, n := range s.names {
		names = append(names, n)
	}
	return names
}

// get imports an image once.
func (s *imageSet) get(kind string, root func() (io.ReadCloser, error)) (string, error) {
	c, err := reach()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[kind]; ok {
		return name, nil
	}
	r, err := root()
	if err != nil {
		return "", err
	}
	defer r.Close()
	name := prefix + "-" + kind + ":latest"
	response, err := c.ImageImport(context.Background(), client.ImageImportSource{Source: r, SourceName: "-"}, name, client.ImageImportOptions{
		Changes: []string{"ENV PATH=/usr/local/bin:/usr/bin:/bin", "CMD [\"/bin/sh\"]"},
	})
	if err != nil {
		return "", fmt.Errorf("import image %s: %w", name, err)
	}
	defer response.Close()
	if out, err := io.ReadAll(response); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		return "", fmt.Errorf("import image %s: %w %s", name, err, out)
	}
	s.names[kind] = name
	return name, nil
}

// must is for tests: what is missing skips them.
func must(t testing.TB, name string, err error) string {
	t.Helper()
	Need(t)
	var missing *missingError
	switch {
	case errors.As(err, &missing):
		Missing(t, "%v", err)
	case err != nil:
		t.Fatal(err)
	}
	return name
}

type missingError struct{ what string }

func (m *missingError) Error() string { return m.what }

// Busybox is an image with busybox and nothing else.
func Busybox(t testing.TB) string {
	t.Helper()
	name, err := images.get("busybox", func() (io.ReadCloser, error) {
		path, err := exec.LookPath("busybox")
		if err != nil {
			return nil, &missingError{"busybox: apt-get install busybox-static"}
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		list, err := exec.Command(path, "--list").Output()
		if err != nil {
			return nil, err
		}
		root := newRoot()
		root.file("bin/busybox", 0o755, binary)
		for _, applet := range strings.Fields(string(list)) {
			if applet != "busybox" {
				root.link("bin/"+applet, "busybox")
			}
		}
		return root.done()
	})
	return must(t, name, err)
}

// Bare is an image without a shell: one static program that can be an agent.
func Bare(t testing.TB) string {
	t.Helper()
	name, err := images.get("bare", func() (io.ReadCloser, error) {
		program, err := Build()
		if err != nil {
			return nil, err
		}
		binary, err := os.ReadFile(program)
		if err != nil {
			return nil, err
		}
		root := newRoot()
		root.file("toolworker-agent", 0o755, binary)
		return root.done()
	})
	return must(t, name, err)
}

// Python is an image with Debian's Python 3 and busybox. Its files come from
// Debian's packages, once for each user of this machine.
func Python(t testing.TB) string {
	t.Helper()
	name, err := PythonImage()
	return must(t, name, err)
}

// PythonImage is Python for programs that are no tests.
func PythonImage() (string, error) {
	return images.get("python", func() (io.ReadCloser, error) {
		path, err := pythonRoot()
		if err != nil {
			return nil, err
		}
		return os.Open(path)
	})
}

// pythonRoot is the cached tar of the image.
func pythonRoot() (string, error) {
	for _, tool := range []string{"apt-get", "dpkg-deb", "busybox", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			return "", &missingError{tool + ", to make an image with Python"}
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(pythonScript))
	path := filepath.Join(cache, "toolworker", fmt.Sprintf("python-%s-%s.tar", runtime.GOARCH, hex.EncodeToString(sum[:6])))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	out, err := os.CreateTemp(filepath.Dir(path), "python-*.tmp")
	if err != nil {
		return "", err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	work, err := os.MkdirTemp("", "toolworker-image-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	var said bytes.Buffer
	cmd := exec.Command("sh", "-c", pythonScript, "sh", work)
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("make image with Python: %w: %s", err, said.String())
	}
	return path, os.Rename(out.Name(), path)
}

// rootFS is a small root file system being written as a tar.
type rootFS struct {
	buf bytes.Buffer
	tar *tar.Writer
	err error
}

func newRoot() *rootFS {
	r := &rootFS{}
	r.tar = tar.NewWriter(&r.buf)
	for dir, mode := range map[string]int64{"bin": 0o755, "etc": 0o755, "tmp": 0o1777, "proc": 0o755, "sys": 0o755, "dev": 0o755, "workspace": 0o755} {
		r.add(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode}, nil)
	}
	r.file("etc/passwd", 0o644, []byte("root:x:0:0:root:/:/bin/sh\n"))
	return r
}

func (r *rootFS) add(h *tar.Header, content []byte) {
	if r.err == nil {
		r.err = r.tar.WriteHeader(h)
	}
	if r.err == nil {
		_, r.err = r.tar.Write(content)
	}
}

func (r *rootFS) file(name string, mode int64, content []byte) {
	r.add(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content)
}

func (r *rootFS) link(name, target string) {
	r.add(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}, nil)
}

func (r *rootFS) done() (io.ReadCloser, error) {
	if r.err == nil {
		r.err = r.tar.Close()
	}
	return io.NopCloser(&r.buf), r.err
}
