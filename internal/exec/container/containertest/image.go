package containertest

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
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
func (s *imageSet) get(t testing.TB, kind string, root func(t testing.TB) io.ReadCloser) string {
	t.Helper()
	c := Need(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if name, ok := s.names[kind]; ok {
		return name
	}
	r := root(t)
	defer r.Close()
	name := prefix + "-" + kind + ":latest"
	response, err := c.ImageImport(context.Background(), client.ImageImportSource{Source: r, SourceName: "-"}, name, client.ImageImportOptions{
		Changes: []string{"ENV PATH=/usr/local/bin:/usr/bin:/bin", "CMD [\"/bin/sh\"]"},
	})
	if err != nil {
		t.Fatalf("import image %s: %v", name, err)
	}
	defer response.Close()
	if out, err := io.ReadAll(response); err != nil || bytes.Contains(out, []byte(`"error"`)) {
		t.Fatalf("import image %s: %v %s", name, err, out)
	}
	s.names[kind] = name
	return name
}

// Busybox is an image with busybox and nothing else.
func Busybox(t testing.TB) string {
	t.Helper()
	return images.get(t, "busybox", func(t testing.TB) io.ReadCloser {
		path, err := exec.LookPath("busybox")
		if err != nil {
			Missing(t, "busybox: apt-get install busybox-static")
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		list, err := exec.Command(path, "--list").Output()
		if err != nil {
			t.Fatal(err)
		}
		root := newRoot()
		root.file("bin/busybox", 0o755, binary)
		for _, applet := range strings.Fields(string(list)) {
			if applet != "busybox" {
				root.link("bin/"+applet, "busybox")
			}
		}
		return root.done(t)
	})
}

// Bare is an image without a shell: one static program that sleeps.
func Bare(t testing.TB) string {
	t.Helper()
	return images.get(t, "bare", func(t testing.TB) io.ReadCloser {
		binary, err := os.ReadFile(Program(t))
		if err != nil {
			t.Fatal(err)
		}
		root := newRoot()
		root.file("toolworker-agent", 0o755, binary)
		return root.done(t)
	})
}

// Python is an image with Debian's Python 3 and busybox. Its files come from
// Debian's packages, once for each user of this machine.
func Python(t testing.TB) string {
	t.Helper()
	return images.get(t, "python", func(t testing.TB) io.ReadCloser {
		f, err := os.Open(pythonRoot(t))
		if err != nil {
			t.Fatal(err)
		}
		return f
	})
}

// pythonRoot is the cached tar of the image.
func pythonRoot(t testing.TB) string {
	t.Helper()
	for _, tool := range []string{"apt-get", "dpkg-deb", "busybox", "tar"} {
		if _, err := exec.LookPath(tool); err != nil {
			Missing(t, "%s, to make an image with Python", tool)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(pythonScript))
	path := filepath.Join(cache, "toolworker", fmt.Sprintf("python-%s-%s.tar", runtime.GOARCH, hex.EncodeToString(sum[:6])))
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := os.CreateTemp(filepath.Dir(path), "python-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(out.Name())
	defer out.Close()
	work, err := os.MkdirTemp("", "toolworker-image-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	var said bytes.Buffer
	cmd := exec.Command("sh", "-c", pythonScript, "sh", work)
	cmd.Stdout, cmd.Stderr = out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("make image with Python: %v: %s", err, said.String())
	}
	if err := os.Rename(out.Name(), path); err != nil {
		t.Fatal(err)
	}
	return path
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

func (r *rootFS) done(t testing.TB) io.ReadCloser {
	t.Helper()
	if r.err == nil {
		r.err = r.tar.Close()
	}
	if r.err != nil {
		t.Fatal(r.err)
	}
	return io.NopCloser(&r.buf)
}
