package launch

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func base(argv ...string) *Child {
	return &Child{Argv: argv, Env: []string{"PATH=/usr/bin:/bin"}, UID: -1, GID: -1, Ruleset: -1, Files: []int{0, 1, 2}}
}

func waitFor(t *testing.T, pid int) unix.WaitStatus {
	t.Helper()
	var ws unix.WaitStatus
	for {
		_, err := unix.Wait4(pid, &ws, 0, nil)
		if err == nil {
			return ws
		}
		if err != unix.EINTR {
			t.Fatal(err)
		}
	}
}

func TestChildHasItsDescriptorsAndNoOthers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	leak, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	inherited, err := unix.FcntlInt(leak.Fd(), unix.F_DUPFD, 30) // not close-on-exec
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	c := base("sh", "-c", "for f in $(seq 0 60); do [ -e /proc/$$/fd/$f ] && printf '%s ' $f; done; readlink /proc/$$/fd/1 /proc/$$/fd/3 | uniq | wc -l")
	// Crossing each other: 1 and 3 both become the pipe, whatever numbers they had.
	c.Files = []int{int(leak.Fd()), int(w.Fd()), 2, int(w.Fd())}
	pid, err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	buf := make([]byte, 200)
	n, _ := r.Read(buf)
	if ws := waitFor(t, pid); ws.ExitStatus() != 0 {
		t.Fatalf("exit status %d", ws.ExitStatus())
	}
	rest := make([]byte, 200)
	m, _ := r.Read(rest)
	if got := string(buf[:n]) + string(rest[:m]); got != "0 1 2 3 1\n" {
		t.Errorf("descriptors of the child: %q", got)
	}
}

func TestStartNamesTheStepThatFailed(t *testing.T) {
	notExecutable := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(notExecutable, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change func(*Child)
		step   string
		errno  syscall.Errno
	}{
		"missing":        {func(c *Child) { c.Argv[0] = "no-such-program" }, StepExec, syscall.ENOENT},
		"missing path":   {func(c *Child) { c.Argv[0] = "/no/such/program" }, StepExec, syscall.ENOENT},
		"not executable": {func(c *Child) { c.Argv[0] = notExecutable }, StepExec, syscall.EACCES},
		"directory":      {func(c *Child) { c.Argv[0] = "/usr" }, StepExec, syscall.EACCES},
		"working dir":    {func(c *Child) { c.Dir = "/no/such/dir" }, "change directory", syscall.ENOENT},
	} {
		t.Run(name, func(t *testing.T) {
			c := base("true")
			tc.change(c)
			_, err := c.Start()
			var e *Error
			if !errors.As(err, &e) || e.Step != tc.step || e.Errno != tc.errno {
				t.Fatalf("error %v, want %s: %v", err, tc.step, tc.errno)
			}
		})
	}
}

func TestStartRefusesWhatTheKernelCannotCarry(t *testing.T) {
	for name, c := range map[string]*Child{
		"no command":       base(),
		"empty command":    base(""),
		"NUL in argument":  base("true", "a\x00b"),
		"NUL in command":   base("/bin/true\x00"),
		"relative in PATH": {Argv: []string{"true"}, Env: []string{"PATH=.:bin"}, UID: -1, GID: -1, Ruleset: -1},
	} {
		if _, err := c.Start(); err == nil {
			t.Errorf("%s: started", name)
		}
	}
	c := base("true")
	c.Env = append(c.Env, "A=\x00")
	if _, err := c.Start(); err == nil {
		t.Error("NUL in environment: started")
	}
}

func TestChildBeginsWithDefaultSignalsAndLimits(t *testing.T) {
	c := base("sh", "-c", `grep -q '^SigBlk:.0*$' /proc/self/status && grep -q '^SigIgn:.0*$' /proc/self/status && [ $(ulimit -n) = 77 ] && grep -q '^NoNewPrivs:.1' /proc/self/status && [ $(cut -d' ' -f6 /proc/self/stat) = $(cut -d' ' -f6 /proc/$$/stat) ]`)
	c.NoNewPrivs = true
	c.Limits = []Limit{{unix.RLIMIT_NOFILE, 77, 77}}
	pid, err := c.Start()
	if err != nil {
		t.Fatal(err)
	}
	if ws := waitFor(t, pid); ws.ExitStatus() != 0 {
		t.Errorf("exit status %d", ws.ExitStatus())
	}
}
