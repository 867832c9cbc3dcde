package container

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/exec/container/engine"
)

// Labels of the containers and volumes that workers make.
const (
	labelManaged = "dev.toolworker.managed"
	labelWorker  = "dev.toolworker.worker"
	labelProcess = "dev.toolworker.process"
	labelProject = "dev.toolworker.project"
	labelExpires = "dev.toolworker.expires" // unix seconds
	labelAgent   = "dev.toolworker.agent"   // the agent's volume is mounted
)

// labels are those of something that this worker makes.
func (c *Config) labels(project string, now time.Time) map[string]string {
	l := map[string]string{
		labelManaged: "true",
		labelWorker:  c.Worker,
		labelProcess: thisProcess(),
		labelExpires: strconv.FormatInt(now.Add(c.Lifetime).Unix(), 10),
	}
	if project != "" {
		l[labelProject] = project
	}
	return l
}

// orphaned reports whether nobody needs something with these labels any more:
// its worker is dead, or its time is over. Whether a worker of this machine
// lives is seen from its process, of others Alive says so.
func (c *Config) orphaned(l engine.Labelled, now time.Time) bool {
	if l.Labels[labelManaged] == "" || l.Labels[labelProcess] == thisProcess() {
		return false // what this worker still needs, it knows itself
	}
	if expires, err := strconv.ParseInt(l.Labels[labelExpires], 10, 64); err == nil && now.After(time.Unix(expires, 0).Add(time.Minute)) {
		return true
	}
	if alive, known := processAlive(l.Labels[labelProcess]); known {
		return !alive
	}
	return c.Alive != nil && !c.Alive(l.Labels[labelWorker])
}

// thisProcess names this process among all that ever ran on any machine: the
// machine's boot, its pid namespace, its pid and when it was started.
func thisProcess() string {
	space := processSpace()
	start, ok := startTime(os.Getpid())
	if space == "" || !ok {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", space, os.Getpid(), start)
}

// processSpace names the space in which pids mean something.
func processSpace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return ""
	}
	return fmt.Sprintf("%s/%d", strings.TrimSpace(string(boot)), st.Ino)
}

// processAlive looks for the process with this name; known is false when it
// is one of another machine or container.
func processAlive(name string) (alive, known bool) {
	rest, ok := strings.CutPrefix(name, processSpace()+"/")
	if !ok || processSpace() == "" {
		return false, false
	}
	number, started, ok := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil {
		return false, false
	}
	start, ok := startTime(pid)
	return ok && start == started, true
}

// startTime is the twenty-second field of /proc/<pid>/stat, ticks since boot.
func startTime(pid int) (string, bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", false
	}
	s := string(b)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	const after = 22 - 3 // the first field here is the third
	if len(fields) <= after || fields[0] == "Z" {
		return "", false
	}
	return fields[after], true
}
