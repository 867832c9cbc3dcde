package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestChangesAreListed(t *testing.T) {
	inLab(t, allLevels, func(l *lab) {
		for _, name := range []string{"kept", "changed", "gone"} {
			if err := os.WriteFile(filepath.Join(l.root, name), []byte("x"), 0o666); err != nil {
				l.Fatal(err)
			}
		}
		r := l.python("import os\nos.mkdir('new'); open('new/file', 'w').close(); open('changed', 'a').write('y'); os.remove('gone'); open('kept').read()\nraise SystemExit(3)")
		want := []tool.Change{
			{Path: "changed", Change: tool.Modified}, {Path: "gone", Change: tool.Deleted},
			{Path: "new", Change: tool.Created}, {Path: "new/file", Change: tool.Created},
		}
		if diff := cmp.Diff(want, r.Changes); diff != "" || r.ChangesTruncated || r.Code != 3 {
			l.Errorf("%s%v", diff, r)
		}
		if r := l.run(Spec{Code: []byte("open('kept').read()")}); r.Changes != nil || r.ChangesTruncated {
			l.Errorf("a run that may not write changed %v", r.Changes)
		}
		if r := l.python("pass"); len(r.Changes) > 0 {
			l.Errorf("a run that wrote nothing changed %v", r.Changes)
		}
		if r := l.run(Spec{Argv: []string{"/no/such/command"}, Writable: true}); r.StartError == "" || r.Changes != nil {
			l.Errorf("got %v", r)
		}
	})
}
