package sandbox

import (
	"os"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/tool"
)

func TestNewTakesTheStrongestLevel(t *testing.T) {
	r, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep := Probe(t.Context(), Config{})
	if rep.Err != nil {
		t.Fatal(rep.Err)
	}
	if got := r.(*runner).level; got != rep.Level || got == tool.IsolationNone {
		t.Errorf("level %s, the probe found %s", got, rep.Level)
	}
}

func TestNoneOnlyByName(t *testing.T) {
	r, err := New(Config{Require: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := r.(*runner).level; got != tool.IsolationNone {
		t.Errorf("level %s, want none", got)
	}
}

func TestRequirementFailsClosed(t *testing.T) {
	for name, c := range map[string]Config{
		"level below the requirement": {Level: tool.IsolationReduced, Require: tool.IsolationFull},
		"unknown level":               {Level: "some"},
		"unknown requirement":         {Require: "some"},
		"no such interpreter":         {Interpreter: "/no/such/python3"},
		"relative executable":         {Executable: "worker"},
		"tiny temporary directory":    {TmpBytes: 1},
	} {
		if r, err := New(c); err == nil {
			_ = r.Close()
			t.Errorf("%s: a runner was made", name)
		}
	}
	// A binary that does not call Main is no supervisor: nothing works, and
	// none is not fallen back to.
	if r, err := New(Config{Executable: "/bin/false"}); err == nil {
		_ = r.Close()
		t.Error("a runner without supervisors was made")
	} else if !strings.Contains(err.Error(), "full") || !strings.Contains(err.Error(), "hint:") {
		t.Errorf("error %q has neither the level nor a hint", err)
	}
}

func TestRunRefusesToGoBelowWhatIsDemanded(t *testing.T) {
	l := &lab{T: t, runner: sharedRunner(t, tool.IsolationReduced), root: newRoot(t)}
	r := l.run(Spec{Least: tool.IsolationFull, Code: []byte("print(1)")})
	if r.StartError == "" || r.out != "" || r.Code != -1 {
		t.Errorf("ran below the demanded level: %v", r)
	}
}

func TestRunRefusesNonsense(t *testing.T) {
	r := sharedRunner(t, tool.IsolationNone)
	root := newRoot(t)
	for name, s := range map[string]Spec{
		"neither":           {Root: root},
		"both":              {Root: root, Argv: []string{"true"}, Code: []byte("pass")},
		"relative root":     {Root: "project", Code: []byte("pass")},
		"root of all":       {Root: "/", Code: []byte("pass")},
		"unclean root":      {Root: root + "/../x", Code: []byte("pass")},
		"missing root":      {Root: root + "/missing", Code: []byte("pass")},
		"protect outside":   {Root: root, Code: []byte("pass"), Protect: []string{"../x"}},
		"protect all":       {Root: root, Code: []byte("pass"), Protect: []string{"."}},
		"relative readonly": {Root: root, Code: []byte("pass"), ReadOnly: []string{"x"}},
	} {
		if e, err := r.Run(t.Context(), &s); err == nil {
			t.Errorf("%s: ran, %+v", name, e)
		}
	}
}

func TestClosedRunnerRunsNothing(t *testing.T) {
	r, err := New(Config{Level: tool.IsolationNone})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Run(t.Context(), &Spec{Root: newRoot(t), Code: []byte("pass")}); err != ErrClosed {
		t.Errorf("error %v, want %v", err, ErrClosed)
	}
}

func TestProbeFindsEveryMechanism(t *testing.T) {
	rep := Probe(t.Context(), Config{})
	if rep.Err != nil || rep.Level == "" || rep.Interpreter == nil {
		t.Fatalf("%+v", rep)
	}
	names := map[string]Finding{}
	for _, f := range rep.Findings {
		names[f.Name] = f
		if f.Detail == "" {
			t.Errorf("%s has no detail", f.Name)
		}
		if f.Found && f.Hint != "" {
			t.Errorf("%s is there, and yet there is a hint: %s", f.Name, f.Hint)
		}
	}
	for _, n := range []string{"interpreter", "isolation full", "isolation reduced", "isolation none", "Landlock", "memory limit", "process limit", "cpu limit"} {
		if _, ok := names[n]; !ok {
			t.Errorf("nothing is said of %s", n)
		}
	}
	if !names["isolation none"].Found {
		t.Errorf("isolation none: %+v", names["isolation none"])
	}
	if rep = Probe(t.Context(), Config{Interpreter: "/no/such/python3"}); rep.Err == nil || rep.Findings[0].Hint == "" {
		t.Errorf("without an interpreter: %+v", rep)
	}
	if rep = Probe(t.Context(), Config{Executable: "/bin/false", Require: tool.IsolationFull}); rep.Err == nil || rep.Level != "" {
		t.Errorf("without supervisors: %+v", rep)
	}
}

func TestFindInterpreterPrefersOneThatAnybodyCanReach(t *testing.T) {
	i, err := FindInterpreter(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if !reachable(i) {
		if _, err := os.Stat("/usr/bin/python3"); err == nil {
			t.Errorf("chose %s, and /usr/bin/python3 is there", i.Path)
		}
	}
	if _, err := FindInterpreter(t.Context(), "no-such-python"); err == nil {
		t.Error("found an interpreter that is not there")
	}
}
