package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestBesideEntry(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.py": "a", "sub/b.py": "b", "python3": "not the interpreter", "-v": "not an option", "word/x": "in a directory", "big": strings.Repeat("x", maxCarried+1),
	})
	for _, tt := range []struct {
		command []string
		want    map[string][]byte
		wantErr string
	}{
		{command: []string{"python3", "-I", "a.py", "sub/b.py"}, want: map[string][]byte{"a.py": []byte("a"), "sub/b.py": []byte("b")}},
		{command: []string{"./a.py", "sub/../a.py"}, want: map[string][]byte{"a.py": []byte("a")}},
		{command: []string{"env", "python3"}, want: map[string][]byte{"python3": []byte("not the interpreter")}},
		{command: []string{"python3", "-v", "word", "nosuch.py", "", ".", "../" + filepath.Base(dir) + "/a.py", dir + "/a.py"}},
		{command: []string{"cat", "big"}, wantErr: "/command/1: file beside the entry is larger than the 524288 bytes that the bucket carries"},
	} {
		got, err := besideEntry(&tool.Definition{Dir: dir, Command: tt.command})
		if tt.wantErr != "" {
			if err == nil || err.Error() != tt.wantErr {
				t.Errorf("%v: %v, want %s", tt.command, err, tt.wantErr)
			}
			continue
		}
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%v: %v (-want +got):\n%s", tt.command, err, diff)
		}
	}
}

const scripted = "kind: Tool\nname: s\ncommand: [python3, -I, s.py, lib/data.txt]\n"

// besideOf reads the files beside a tool.
func besideOf(t *testing.T, s *Snapshot, name string) map[string]string {
	t.Helper()
	d, ok := s.Tool(name)
	if !ok || d.Dir == "" {
		return nil
	}
	files := map[string]string{}
	err := filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o555 != 0o555 || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		if e.IsDir() {
			return nil
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, d.Dir+"/")] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFilesTravelWithTheirEntry(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	old := syscall.Umask(0o077) // a careful operator's
	t.Cleanup(func() { syscall.Umask(old) })

	store, _, js := newStore(t)
	files := map[string]string{"s.yaml": scripted, "s.py": "v1", "lib/data.txt": "data", "unused.py": "x"}
	mustApply(t, store, files)

	ctx, cancel := context.WithCancel(context.Background())
	s, err := Open(ctx, Options{JetStream: js, Bucket: testBucket, Interval: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	defer running.Wait()
	defer cancel()
	waitReady(t, s)
	first := s.Snapshot()
	if diff := cmp.Diff(map[string]string{"s.py": "v1", "lib/data.txt": "data"}, besideOf(t, first, "s")); diff != "" {
		t.Errorf("beside the entry (-want +got):\n%s", diff)
	}

	// Only a script changes; what runs from the old one is not disturbed.
	files["s.py"] = "v2"
	if applied := mustApply(t, store, files); !cmp.Equal(applied.Changed, []string{"tool.s"}) {
		t.Errorf("another script: %+v", applied)
	}
	eventually(t, "the new script is there", func() bool { return besideOf(t, s.Snapshot(), "s")["s.py"] == "v2" })
	if got := besideOf(t, first, "s")["s.py"]; got != "v1" {
		t.Errorf("the old snapshot has %q", got)
	}
	if applied := mustApply(t, store, files); len(applied.Changed) != 0 {
		t.Errorf("the same once more: %+v", applied)
	}
	// An entry that needs none any more has none.
	mustApply(t, store, map[string]string{"s.yaml": "kind: Tool\nname: s\ncode: pass\n"})
	eventually(t, "the entry has code", func() bool { d, _ := s.Snapshot().Tool("s"); return d.Code != "" })
	if d, _ := s.Snapshot().Tool("s"); d.Dir != "" {
		t.Errorf("Dir is %s", d.Dir)
	}

	cancel()
	running.Wait()
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "toolworker-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// Files are checked against what their entry says, whoever wrote them.
func TestFilesAreChecked(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	store, kv, js := newStore(t)
	mustApply(t, store, map[string]string{"s.yaml": scripted + "---\nkind: Tool\nname: t\ncommand: [t]\n", "s.py": "good", "lib/data.txt": "data"})
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	waitReady(t, s)
	value, err := kv.Get(t.Context(), revisionKey)
	if err != nil {
		t.Fatal(err)
	}
	m, err := parseManifest(value.Value())
	if err != nil {
		t.Fatal(err)
	}
	good := m.Files["tool.s"]["s.py"]
	for name, change := range map[string]func(m *manifest){
		"climbing name": func(m *manifest) { m.Files["tool.s"] = fileSet{"../../s.py": good} },
		"absolute name": func(m *manifest) { m.Files["tool.s"] = fileSet{"/s.py": good} },
		"unknown file":  func(m *manifest) { m.Files["tool.s"] = fileSet{"s.py": strings.Repeat("0", 64)} },
		"odd digest":    func(m *manifest) { m.Files["tool.s"] = fileSet{"s.py": "*.>"} },
	} {
		t.Run(name, func(t *testing.T) {
			bad := m.clone()
			change(bad)
			text, err := bad.encode()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kv.Put(t.Context(), revisionKey, text); err != nil {
				t.Fatal(err)
			}
			var faults Faults
			eventually(t, "the fault is reported", func() bool { return errors.As(s.Err(), &faults) })
			if faults[0].Place.File != "tool.s" || !strings.Contains(faults[0].Reason, "apply its entry again") {
				t.Errorf("faults: %v", faults)
			}
			if got := besideOf(t, s.Snapshot(), "s")["s.py"]; got != "good" {
				t.Errorf("the last good one does not stay: %q", got)
			}
			if commandOf(s.Snapshot(), "t") != "t" {
				t.Error("the other entry is gone")
			}
			if _, err := kv.Put(t.Context(), revisionKey, value.Value()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the fault is gone", func() bool { return s.Err() == nil })
		})
	}
	// Content under another digest is no content.
	if _, err := kv.PutString(t.Context(), filePrefix+good, "evil"); err != nil {
		t.Fatal(err)
	}
	if _, err := (&scratch{}).place(t.Context(), kv, fileSet{"s.py": good}); !errors.Is(err, errFile) {
		t.Errorf("evil content: %v", err)
	}
}

func TestUnusedFilesAreSwept(t *testing.T) {
	store, kv, _ := newStore(t)
	mustApply(t, store, map[string]string{"s.yaml": scripted, "s.py": "v1", "lib/data.txt": "data"})
	mustApply(t, store, map[string]string{"s.yaml": scripted, "s.py": "v2", "lib/data.txt": "data"})
	there := func(content string) bool {
		_, err := kv.Get(t.Context(), filePrefix+digestOf([]byte(content)))
		return err == nil
	}
	if !there("v1") {
		t.Error("swept while somebody could still need it")
	}
	store.sweep(t.Context(), 0)
	if there("v1") || !there("v2") || !there("data") {
		t.Errorf("v1 %v, v2 %v, data %v", there("v1"), there("v2"), there("data"))
	}
}

func TestSampleCatalogueCanBeApplied(t *testing.T) {
	store, _, js := newStore(t)
	if _, err := store.Apply(t.Context(), "../../deploy/catalog"); err != nil {
		t.Fatal(err)
	}
	s := runSource(t, Options{JetStream: js, Bucket: testBucket})
	waitReady(t, s)
	want, err := os.ReadFile("../../deploy/catalog/file_read.py")
	if err != nil {
		t.Fatal(err)
	}
	if got := besideOf(t, s.Snapshot(), "file_read")["file_read.py"]; got != string(want) {
		t.Errorf("file_read.py is %q", got)
	}
}
