// Package cmd_test runs what README.md says with the built programs.
package cmd_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/toolworker/toolworker/internal/tool"
	"github.com/toolworker/toolworker/schemas"
)

const readme = "../README.md"

// step is one command of the README and the output that it shows; "" where
// it shows none.
type step struct{ command, output string }

// steps are the commands of all console blocks.
func steps(t *testing.T) []step {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	var list []step
	for _, block := range strings.Split(string(text), "```console\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ "); ok {
				list = append(list, step{command: strings.TrimSpace(command)})
				continue
			}
			list[len(list)-1].output += line
		}
	}
	if len(list) < 10 {
		t.Fatalf("%d commands in the README", len(list))
	}
	return list
}

// shell is where the commands are run: a directory of its own with the built
// programs in its PATH, and a port that nobody else uses.
type shell struct {
	dir string
	env []string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{dir: t.TempDir()}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "./cmd/worker", "./cmd/publisher")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for _, name := range []string{"deploy", "schemas"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "NO_COLOR=1",
		"TOOLWORKER_EMBEDDED_LISTEN="+address, "TOOLWORKER_HTTP_LISTEN=127.0.0.1:0", "ADDRESS="+address)
	return s
}

func (s *shell) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = s.dir, s.env
	if strings.Contains(line, "publisher ") { // the worker starts its own server
		cmd.Env = append(slices.Clone(s.env), "TOOLWORKER_NATS_URL=nats://"+s.address())
	}
	return cmd
}

func (s *shell) address() string {
	for _, kv := range s.env {
		if v, ok := strings.CutPrefix(kv, "ADDRESS="); ok {
			return v
		}
	}
	return ""
}

// background starts a worker and waits until it serves.
func (s *shell) background(t *testing.T, line string) {
	t.Helper()
	cmd := s.command(context.Background(), "exec "+line)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out.String())
		}
	})
	deadline := time.After(time.Minute)
	for ticks := time.Tick(50 * time.Millisecond); ; {
		if queue, err := s.command(t.Context(), "publisher queue").Output(); err == nil && strings.Contains(string(queue), "serving") {
			return
		}
		select {
		case <-ticks:
		case <-deadline:
			t.Fatalf("%s does not serve:\n%s", line, out.String())
		}
	}
}

// varying is what differs from run to run.
var varying = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`[0-9.]+ (us|ms|s) `), "N ms "},
	{regexp.MustCompile(`worker [A-Za-z0-9_-]+\n`), "worker W\n"},
	{regexp.MustCompile(`isolation (full|reduced)`), "isolation L"},
}

func normalized(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	return text
}

func TestCommandsOfTheReadme(t *testing.T) {
	s := newShell(t)
	t.Cleanup(func() { _ = os.Remove("/tmp/sandbox/demo/teas.txt") })
	for _, step := range steps(t) {
		if line, ok := strings.CutSuffix(step.command, " &"); ok {
			s.background(t, line)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		begun := time.Now()
		out, err := s.command(ctx, step.command).CombinedOutput()
		t.Logf("%6.2f s  $ %s", time.Since(begun).Seconds(), step.command)
		cancel()
		if step.output == "" && err != nil {
			t.Errorf("$ %s: %v\n%s", step.command, err, out)
		}
		if diff := cmp.Diff(normalized(step.output), normalized(string(out))); step.output != "" && diff != "" {
			t.Errorf("$ %s (-README +now):\n%s", step.command, diff)
		}
	}
}

// part is what stands between two markers of the README.
func part(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "<!-- "+name+" -->\n")
	inside, _, closed := strings.Cut(rest, "<!-- end of "+name+" -->\n")
	if !ok || !closed {
		t.Fatalf("the README has no part %q", name)
	}
	return inside
}

var quoted = regexp.MustCompile("`([a-z_0-9]+)`")

// firstColumn is what stands in backquotes in the first column of a table.
func firstColumn(table string) []string {
	var names []string
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		for _, m := range quoted.FindAllStringSubmatch(cells[min(1, len(cells)-1)], -1) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

func TestErrorCodesOfTheReadme(t *testing.T) {
	codes := declaredCodes(t)
	if diff := cmp.Diff(codes, firstColumn(part(t, "error codes"))); diff != "" {
		t.Errorf("(-code +README):\n%s", diff)
	}
	for line := range strings.Lines(part(t, "error codes")) {
		cells := strings.Split(line, "|")
		name := strings.Trim(strings.TrimSpace(cells[1]), "`")
		if !slices.Contains(codes, name) {
			continue
		}
		if got, want := strings.TrimSpace(cells[2]), string(tool.Code(name).Status()); got != want {
			t.Errorf("%s: the README says %q, it is %q", name, got, want)
		}
	}
}

// declaredCodes are the constants of type Code.
func declaredCodes(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../internal/tool/code.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); ok && kind.Name == "Code" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			codes = append(codes, value)
		}
		return true
	})
	slices.Sort(codes)
	return codes
}

func TestCatalogueMembersOfTheReadme(t *testing.T) {
	for name, file := range map[string]string{"members of a tool": schemas.Tool, "members of a project": schemas.Project} {
		schema, err := schemas.Compile(file)
		if err != nil {
			t.Fatal(err)
		}
		var members []string
		for member := range schema.Properties {
			members = append(members, member)
		}
		slices.Sort(members)
		if diff := cmp.Diff(members, firstColumn(part(t, name))); diff != "" {
			t.Errorf("%s (-schema +README):\n%s", name, diff)
		}
	}
}
