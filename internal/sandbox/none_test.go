package sandbox

import (
	"bytes"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestCommandAndCodeAtLevelNone(t *testing.T) {
	r, err := New(Config{Require: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out, errs bytes.Buffer
	root := t.TempDir()
	e, err := r.Run(t.Context(), &Spec{
		Root: root, Argv: []string{"sh", "-c", "cat; pwd; env; exit 3"}, Input: []byte("hello\n"),
		Env: []string{"A=b", "PATH=/usr/bin:/bin"}, Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := "hello\n" + root + "\nA=b\nPATH=/usr/bin:/bin\nPWD=" + root + "\n"
	if e.Code != 3 || out.String() != want || errs.Len() > 0 {
		t.Errorf("command: exit %+v, stdout %q, stderr %q, want %q", e, &out, &errs, want)
	}
	out.Reset()
	e, err = r.Run(t.Context(), &Spec{
		Root: root, Code: []byte("print(input_data); result = {'a': 1}"), Name: "sum", Input: []byte(`{"x":1}`), Stdout: &out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.Code != 0 || out.String() != "{'x': 1}\n" || string(e.Value) != `{"a":1}` || e.Sandbox.Isolation != tool.IsolationNone {
		t.Errorf("code: exit %+v, output %q", e, &out)
	}
}
