package exectest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/exec"
)

// tryWrites is Python that prints, for each way to change a file, the error it met.
const tryWrites = `
import os
def attempt(what, f):
    try: f(); print(what, 'worked')
    except OSError as e: print(what, 'failed')
attempt('create', lambda: open('created', 'w').close())
attempt('overwrite', lambda: open('kept', 'w').close())
attempt('append', lambda: open('kept', 'a').close())
attempt('delete', lambda: os.unlink('kept'))
attempt('rename', lambda: os.rename('kept', 'renamed'))
attempt('directory', lambda: os.mkdir('made'))
attempt('link', lambda: os.symlink('kept', 'linked'))
attempt('hard link', lambda: os.link('kept', 'hard'))
`

var files = []test{
	{"a tool reads the project", func(t *testing.T, s *Subject) {
		s.write(t, "src/data.txt", "content")
		for form, make := range s.forms() {
			e := s.run(t, make("print(open('src/data.txt').read(), open('"+s.Inside+"/src/data.txt').read())"))
			e.wantExit(t, 0)
			if e.all() != "content content\n" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"a tool that writes changes the project", func(t *testing.T, s *Subject) {
		for form, make := range s.forms() {
			s.write(t, "kept", "old")
			task := make("import os\nos.makedirs('build', exist_ok=True)\nopen('build/out.txt', 'w').write('42')\nopen('kept', 'w').write('new')")
			task.Writes = true
			e := s.run(t, task)
			e.wantExit(t, 0)
			if s.read(t, "build/out.txt") != "42" || s.read(t, "kept") != "new" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"case 18: the kernel refuses writes of a tool that does not write", func(t *testing.T, s *Subject) {
		if !s.ReadOnly {
			t.Skip("this backend does not make the project read-only")
		}
		for form, make := range s.forms() {
			s.write(t, "kept", "old")
			e := s.run(t, make(tryWrites))
			e.wantExit(t, 0)
			if strings.Contains(e.all(), "worked") || s.read(t, "kept") != "old" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
	{"what is protected stays as it is", func(t *testing.T, s *Subject) {
		if !s.Protects {
			t.Skip("this backend does not protect parts of a writable project")
		}
		for form, make := range s.forms() {
			s.write(t, ".git/hooks/kept", "old")
			s.write(t, ".git/config", "old")
			s.write(t, "free/kept", "old")
			task := func(dir string) *exec.Task {
				task := make("import os; os.chdir('" + dir + "')" + tryWrites)
				task.Writes, task.Protect = true, []string{".git/hooks", ".git/config", "not/there"}
				return task
			}
			e := s.run(t, task(".git/hooks"))
			e.wantExit(t, 0)
			if strings.Contains(e.all(), "worked") || s.read(t, ".git/hooks/kept") != "old" {
				t.Errorf("%s: %s", form, e)
			}
			e = s.run(t, task("free"))
			e.wantExit(t, 0)
			if !strings.Contains(e.all(), "create worked") {
				t.Errorf("%s, not protected: %s", form, e)
			}
			config := make("open('.git/config', 'w').write('new')")
			config.Writes, config.Protect = true, []string{".git/config"}
			if e := s.run(t, config); e.ExitCode != 1 || s.read(t, ".git/config") != "old" {
				t.Errorf("%s, protected file: %s", form, e)
			}
			_ = os.RemoveAll(filepath.Join(s.Root, "free"))
		}
	}},
	{"case 18: the system is read-only", func(t *testing.T, s *Subject) {
		if !s.ReadOnly {
			t.Skip("this backend does not make the system read-only")
		}
		for form, make := range s.forms() {
			task := make(`
for name in ('/exectest', '/etc/exectest', '/usr/exectest', '/usr/bin/exectest'):
    try: open(name, 'w'); print(name)
    except OSError: pass
`)
			task.Writes = true
			e := s.run(t, task)
			e.wantExit(t, 0)
			if e.all() != "" {
				t.Errorf("%s: %s", form, e)
			}
		}
	}},
}

func (s *Subject) write(t *testing.T, name, content string) {
	t.Helper()
	path := filepath.Join(s.Root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *Subject) read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.Root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
