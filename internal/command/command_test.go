package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolworker/toolworker/internal/queue"
)

type testGrammar struct {
	Connection
	Serve struct {
		Count int    `name:"count" default:"3"`
		Pool  []Name `name:"pool" default:"default"`
	} `cmd:""`
	Other struct{} `cmd:""`
}

func parseArgs(t *testing.T, args ...string) (*testGrammar, string, error) {
	t.Helper()
	var g testGrammar
	var out bytes.Buffer
	chosen, err := Parse("prog", &g, args, Streams{Out: &out, Err: io.Discard})
	if (chosen == nil) == (err == nil) && out.Len() == 0 {
		t.Fatalf("chosen %v, error %v, nothing printed", chosen, err)
	}
	return &g, out.String(), err
}

func TestEveryFlagHasItsVariable(t *testing.T) {
	t.Setenv("TOOLWORKER_COUNT", "7")
	t.Setenv("TOOLWORKER_SUBJECT_PREFIX", "acme")
	t.Setenv("TOOLWORKER_POOL", "a,b")
	g, _, err := parseArgs(t, "serve")
	if err != nil {
		t.Fatal(err)
	}
	if g.Serve.Count != 7 || g.SubjectPrefix != "acme" || strings.Join(Names(g.Serve.Pool), " ") != "a b" {
		t.Errorf("got %+v", g)
	}
	if g, _, _ = parseArgs(t, "serve", "--count", "1"); g.Serve.Count != 1 {
		t.Error("the variable wins over the flag")
	}
	if g.StreamPrefix != "TOOL" || g.DataDir != queue.DefaultDataDir {
		t.Errorf("defaults: %+v", g.Connection)
	}
}

func TestBadUsageIsOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		"prog: unknown flag --nope (see prog serve --help)":                                                   {"serve", "--nope"},
		`prog: expected one of "serve", "other" (see prog --help)`:                                            {},
		`prog: --count: expected a valid 64 bit int but got "x" (see prog serve --help)`:                      {"serve", "--count=x"},
		`prog: --pool: name "a b": expected 1 to 128 characters of A-Z a-z 0-9 _ - (see prog serve --help)`:   {"serve", "--pool", "a b"},
		`prog: subject prefix "a b": expected 1 to 128 characters of A-Z a-z 0-9 _ - (see prog serve --help)`: {"serve", "--subject-prefix", "a b"},
		`prog: --data-dir, --subject-prefix and --stream-prefix must not be empty (see prog serve --help)`:    {"serve", "--stream-prefix="},
		`prog: --nats-creds: stat /nonexistent/creds: no such file or directory (see prog serve --help)`:      {"serve", "--nats-creds", "/nonexistent/creds"},
		`prog: unexpected argument more (see prog serve --help)`:                                              {"serve", "more"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			_, _, err := parseArgs(t, args...)
			if ExitCode(err) != Usage {
				t.Errorf("exit code %d", ExitCode(err))
			}
			var buf bytes.Buffer
			Report(&buf, "prog", err)
			if buf.String() != want+"\n" {
				t.Errorf("got  %swant %s", buf.String(), want)
			}
		})
	}
}

func TestHelpIsNoError(t *testing.T) {
	_, out, err := parseArgs(t, "serve", "--help")
	if err != nil || !strings.Contains(out, "$TOOLWORKER_COUNT") || !strings.Contains(out, "Connection:") {
		t.Errorf("error %v, text %s", err, out)
	}
	if _, out, err = parseArgs(t, "--help"); err != nil || !strings.Contains(out, "serve") {
		t.Errorf("error %v, text %s", err, out)
	}
}

func TestExitCodes(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code int
		said string
	}{
		"nothing":        {nil, 0, ""},
		"an error":       {errors.New("open x: no\nsecond line"), 1, "prog: open x: no; second line\n"},
		"usage, wrapped": {fmt.Errorf("send: %w", Usagef("--id %q", "x")), 2, "prog: send: --id \"x\"\n"},
		"a bare code":    {&Error{Code: NoResult}, 3, ""},
		"unreachable": {ConnectError(fmt.Errorf("connect: %w", queue.ErrUnreachable)), 4,
			"prog: connect: server unreachable (is a server running there? start one with: worker run)\n"},
		"refused": {ConnectError(fmt.Errorf("connect: %w", queue.ErrRefused)), 4,
			"prog: connect: refused by the server (check --nats-creds, or --data-dir where the embedded server's token is)\n"},
		"another": {ConnectError(errors.New("x")), 1, "prog: x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var buf bytes.Buffer
			Report(&buf, "prog", tc.err)
			if got := ExitCode(tc.err); got != tc.code || buf.String() != tc.said {
				t.Errorf("exit code %d, said %q", got, buf.String())
			}
		})
	}
}

func TestTokenIsFound(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, queue.DefaultDataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, queue.DefaultDataDir, "token"), []byte("default"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	for name, tc := range map[string]struct {
		conn    Connection
		address string
		want    string
	}{
		"by name":                {Connection{DataDir: dir}, "nats://elsewhere:4222", "s3cret"},
		"default, local":         {Connection{DataDir: queue.DefaultDataDir}, "nats://127.0.0.1:4222,nats://localhost", "default"},
		"default, IPv6":          {Connection{DataDir: queue.DefaultDataDir}, "nats://[::1]:4222", "default"},
		"default, elsewhere":     {Connection{DataDir: queue.DefaultDataDir}, "nats://127.0.0.1,nats://example.org", ""},
		"default, password":      {Connection{DataDir: queue.DefaultDataDir}, "nats://u:p@127.0.0.1", ""},
		"credentials":            {Connection{DataDir: dir, NATSCreds: "x"}, "nats://127.0.0.1", ""},
		"a certificate":          {Connection{DataDir: dir, NATSCert: "x"}, "nats://127.0.0.1", ""},
		"nothing there":          {Connection{DataDir: t.TempDir()}, "nats://127.0.0.1", ""},
		"nothing there, default": {Connection{DataDir: "elsewhere"}, "tls://127.0.0.1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			opts, err := tc.conn.Options(tc.address, "me")
			if err != nil || opts.Token != tc.want || opts.Name != "me" || opts.URL != tc.address {
				t.Errorf("error %v, options %+v", err, opts)
			}
		})
	}
}

func TestBadURLs(t *testing.T) {
	for _, address := range []string{"", "localhost:4222", "http://x", "nats://", "nats://a,,nats://b", "nats://u:secret@[x"} {
		_, err := (&Connection{}).Options(address, "me")
		if ExitCode(err) != Usage || !strings.Contains(err.Error(), "--nats-url") {
			t.Errorf("%q: %v", address, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is told: %v", err)
		}
	}
}

// TestMain lets the test binary stand in for a program that waits for signals.
func TestMain(m *testing.M) {
	if os.Getenv("COMMAND_TEST_PROGRAM") == "" {
		os.Exit(m.Run())
	}
	os.Exit(Main("prog", func(ctx context.Context, hurry context.Context, _ []string, s Streams) error {
		fmt.Fprintln(s.Out, "ready")
		<-ctx.Done()
		fmt.Fprintln(s.Out, "draining")
		<-hurry.Done()
		return Usagef("hurried")
	}))
}

func TestFirstSignalEndsTheContextSecondHurries(t *testing.T) {
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		program := exec.Command(os.Args[0])
		program.Env = append(os.Environ(), "COMMAND_TEST_PROGRAM=1")
		out, err := program.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		program.Stderr = &stderr
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"ready\n", "draining\n"} {
			line := make([]byte, len(want))
			if _, err := io.ReadFull(out, line); err != nil || string(line) != want {
				t.Fatalf("read %q, %v", line, err)
			}
			if err := program.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		if err := program.Wait(); program.ProcessState.ExitCode() != Usage || stderr.String() != "prog: hurried\n" {
			t.Errorf("%v: %v, stderr %q", sig, err, stderr.String())
		}
	}
}
