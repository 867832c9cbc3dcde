package sandbox

import (
	"context"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/python"
	"github.com/toolworker/toolworker/internal/tool"
)

// Report is what a machine can do for a sandbox.
type Report struct {
	// Level is the strongest level that works, "" when not even none does.
	Level tool.Isolation
	// Err is why New would refuse the configuration; nil when it would not.
	Err error
	// Interpreter is nil when none was found.
	Interpreter *python.Interpreter
	Findings    []Finding
}

// Finding is one mechanism, looked for.
type Finding struct {
	Name   string // "isolation full", "memory limit"
	Found  bool
	Detail string // what was found, or why not
	Hint   string // what to do about it, "" when nothing needs to be done
}

// Probe looks for every mechanism, by using it.
func Probe(ctx context.Context, c Config) Report {
	var rep Report
	add := func(name string, found bool, detail, hint string) {
		if found {
			hint = ""
		}
		rep.Findings = append(rep.Findings, Finding{name, found, detail, hint})
	}
	c = c.WithDefaults()
	if rep.Err = c.validate(); rep.Err != nil {
		return rep
	}
	r, err := newRunner(ctx, c)
	if err != nil {
		rep.Err = err
		add("interpreter", false, err.Error(), "install Python 3.8 or later where every user can read it, or name one")
		return rep
	}
	defer func() { _ = r.Close() }()
	rep.Interpreter = r.interpreter
	add("interpreter", true, fmt.Sprintf("Python %d.%d, %s", r.interpreter.Version[0], r.interpreter.Version[1], r.interpreter.Path), "")

	for _, l := range []tool.Isolation{tool.IsolationFull, tool.IsolationReduced, tool.IsolationNone} {
		err := r.try(ctx, l)
		if err == nil && rep.Level == "" {
			rep.Level = l
		}
		add("isolation "+string(l), err == nil, detail(err, "works"), hint(l))
	}
	abi := landlock.ABI()
	add("Landlock", abi > 0, found(abi > 0, fmt.Sprintf("ABI %d", abi), "the kernel has none, or it is not among its security modules"),
		"boot with landlock in the lsm= list (Linux 5.13 or later)")
	add("Landlock scopes", abi >= landlock.ScopesABI, found(abi >= landlock.ScopesABI, "signals and abstract sockets stay inside", "the kernel is older"),
		fmt.Sprintf("Linux 6.12 or later has ABI %d; until then namespaces alone keep signals inside", landlock.ScopesABI))
	add("mapped mounts", r.identities.privileged, found(r.identities.privileged, "what tools write belongs to the project's owner",
		"the worker is not privileged: tools run as its own user"), "")
	for _, limit := range []struct{ name, controller, otherwise string }{
		{"memory limit", cgroup.Memory, "held by the supervisor, which looks every 10 ms"},
		{"process limit", cgroup.PIDs, "held by a resource limit and the supervisor"},
		{"cpu limit", cgroup.CPU, "not held: cpus is ignored, cpu_seconds is a resource limit of each process"},
	} {
		version, ok := r.cgroups.Has(limit.controller)
		add(limit.name, ok, found(ok, fmt.Sprintf("control groups version %d", version), limit.otherwise),
			"delegate a control group to the worker: a systemd unit with Delegate=yes, or run as root")
	}
	r.config.Level = c.Level
	rep.Err = r.chooseLevel(ctx)
	return rep
}

func found(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

func detail(err error, good string) string {
	if err == nil {
		return good
	}
	return err.Error()
}

// hint is what may be done where a level does not work.
func hint(l tool.Isolation) string {
	switch l {
	case tool.IsolationFull:
		return namespaceHint()
	case tool.IsolationReduced:
		return "Linux 5.13 or later with landlock in the lsm= list is needed"
	}
	return "see the interpreter"
}

// namespaceHint names what keeps this process from making namespaces.
func namespaceHint() string {
	number := func(file string) string {
		b, err := os.ReadFile("/proc/sys/" + file)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	var uts unix.Utsname
	_ = unix.Uname(&uts)
	var major, minor int
	_, _ = fmt.Sscanf(unix.ByteSliceToString(uts.Release[:]), "%d.%d", &major, &minor)
	switch {
	case major > 0 && (major < 5 || major == 5 && minor < 12):
		return fmt.Sprintf("Linux 5.12 or later is needed, this is %d.%d", major, minor)
	case number("user/max_user_namespaces") == "0":
		return "set user.max_user_namespaces to 10000 by sysctl"
	case number("kernel/unprivileged_userns_clone") == "0":
		return "set kernel.unprivileged_userns_clone to 1 by sysctl, or run the worker as root"
	case number("kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "set kernel.apparmor_restrict_unprivileged_userns to 0 by sysctl, or give the worker an AppArmor profile with userns"
	case seccompFiltered():
		return "this looks like a container whose profile refuses namespaces: run it privileged, or with a profile that allows unshare, mount and pivot_root; else accept isolation reduced"
	}
	return "run the worker as root, or allow its user to make user namespaces"
}

// seccompFiltered reports whether somebody filters this process's calls.
func seccompFiltered() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode == 2
}
