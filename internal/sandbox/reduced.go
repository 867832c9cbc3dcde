package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/cgroup"
	"github.com/toolworker/toolworker/internal/sandbox/landlock"
	"github.com/toolworker/toolworker/internal/sandbox/removal"
	"github.com/toolworker/toolworker/internal/sandbox/seccomp"
)

// namespaces are what level reduced does without.
var namespaces = []string{"user", "mount", "pid", "net", "ipc", "uts", "cgroup"}

// readableAtReduced are the files of the host that a tool at level reduced may read.
var readableAtReduced = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/group", "/etc/host.conf", "/etc/hosts",
	"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/passwd", "/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/protocols", "/etc/resolv.conf", "/etc/services",
	"/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
	"/proc/cpuinfo", "/proc/filesystems", "/proc/meminfo", "/proc/version",
}

var devicesOfTools = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// confineReduced confines s without namespaces, where the machine refuses
// them: Landlock for what has a path, the system call filter for what it does
// not cover, a user without capabilities, and a supervisor to whom every
// orphan comes. The tool has a directory for temporary files of its own, named
// by TMPDIR; /tmp itself belongs to others.
//
// The tool's user is the owner of the project where the worker may switch
// users, else the worker's own. Inline code starts no processes; a command may,
// where the kernel bounds how many: not as root without a control group.
func (r *runner) confineReduced(c *confinement, s *Spec) error {
	if r.landlock == 0 {
		return errors.New("the kernel has no Landlock: Linux 5.13 or later with landlock among its security modules is needed")
	}
	own, _, err := ownerOf(s.Root)
	if err != nil {
		return fmt.Errorf("project directory: %w", err)
	}
	c.mechanism(false, namespaces...)
	switched := own.UID != os.Geteuid() && capable(unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_KILL)
	if switched {
		c.setup.UID, c.setup.GID = own.UID, own.GID
	}
	c.mechanism(switched, "setuid")
	tmp, err := newTemporary(own, switched)
	if err != nil {
		return err
	}
	release := c.release
	c.release = func() {
		if !c.tidied {
			removal.Tree(tmp)
		}
		release()
	}
	c.setup.Temporary = tmp
	if !hasEnv(s.Env, "TMPDIR") {
		c.setup.Env = append(s.Env[:len(s.Env):len(s.Env)], "TMPDIR="+tmp)
	}
	c.setup.DropCaps, c.setup.NoNewPrivs = true, true
	c.mechanism(true, "capabilities", "no_new_privs", "landlock")
	rules := &landlock.Rules{Write: []string{tmp}, Devices: devicesOfTools, NoTCP: !s.Network}
	rules.Read = append(append(rules.Read, readableAtReduced...), r.visible(s)...)
	if s.Writable {
		rules.Write = append(rules.Write, s.Root)
	} else {
		rules.Read = append(rules.Read, s.Root)
	}
	c.setup.Landlock = rules
	c.mechanism(r.landlock >= landlock.ScopesABI, "landlock_scopes")
	user := os.Geteuid()
	if switched {
		user = own.UID
	}
	processes := len(s.Argv) > 0 && (user != 0 || r.bounds(cgroup.PIDs))
	if len(s.Argv) > 0 && !processes {
		c.mechanism(false, "processes")
	}
	c.setup.Filter = r.filters.get(seccomp.Options{
		Shared: true, Inet: s.Network, NoMemfd: !r.bounds(cgroup.Memory), NoProcesses: !processes,
	})
	c.mechanism(true, "seccomp")
	return nil
}

func hasEnv(env []string, name string) bool {
	for _, e := range env {
		if strings.HasPrefix(e, name+"=") {
			return true
		}
	}
	return false
}

// newTemporary makes a directory for the temporary files of one tool.
func newTemporary(own owner, switched bool) (string, error) {
	dir, err := os.MkdirTemp("", "toolworker-tool-")
	if err != nil {
		return "", fmt.Errorf("make directory for temporary files: %w", err)
	}
	if switched {
		if err := os.Chown(dir, own.UID, own.GID); err != nil {
			_ = os.Remove(dir)
			return "", fmt.Errorf("give away directory for temporary files: %w", err)
		}
	}
	return dir, nil
}
