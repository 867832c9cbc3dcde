package reference

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

type grammar struct {
	Quiet bool `help:"Say | nothing." short:"q"`
	Tea   struct {
		Make struct {
			Kind    string   `arg:"" help:"Kind."`
			Minutes int      `default:"3" placeholder:"N" help:"How long (${default})."`
			With    []string `placeholder:"THING" help:"What else."`
		} `cmd:"" help:"Make it."`
	} `cmd:""`
}

func model(t *testing.T) *kong.Application {
	t.Helper()
	k, err := kong.New(&grammar{}, kong.Name("pot"), kong.DefaultEnvars("POT"))
	if err != nil {
		t.Fatal(err)
	}
	return k.Model
}

func TestFlags(t *testing.T) {
	got, err := Flags(model(t), "tea", "make")
	if err != nil {
		t.Fatal(err)
	}
	want := "| flag | variable | |\n|---|---|---|\n" +
		"| `--minutes N` | `POT_MINUTES` | How long (3). |\n" +
		"| `--with THING,...` | `POT_WITH` | What else. |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err = Flags(model(t)); err != nil || got != "| flag | variable | |\n|---|---|---|\n| `-q`, `--quiet` | `POT_QUIET` | Say \\| nothing. |\n" {
		t.Errorf("%v\n%s", err, got)
	}
	if _, err := Flags(model(t), "tea", "drink"); err == nil {
		t.Error("a command that is not there")
	}
}

func TestCommands(t *testing.T) {
	want := "| command | does |\n|---|---|\n| `pot tea make <kind>` | Make it. |\n"
	if diff := cmp.Diff(want, Commands(model(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]string{{"tea", "make"}}, Leaves(model(t))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestVerifyFindsTheParts(t *testing.T) {
	document := filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(document, []byte("a\n<!-- x -->\ntext\n<!-- end of x -->\nb\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	Verify(t, document, "x", "text\n")
	got, err := replace("a\n<!-- x -->\nold\n<!-- end of x -->\nb\n", "x", "new\n")
	if err != nil || got != "a\n<!-- x -->\nnew\n<!-- end of x -->\nb\n" {
		t.Errorf("%v\n%s", err, got)
	}
	for _, bad := range []string{"", "<!-- x -->\n"} {
		if _, err := replace(bad, "x", ""); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestVariables(t *testing.T) {
	if wrong := Variables(model(t), "POT"); len(wrong) > 0 {
		t.Error(wrong)
	}
	if wrong := Variables(model(t), "CUP"); len(wrong) != 3 {
		t.Errorf("%d flags: %v", len(wrong), wrong)
	}
}
