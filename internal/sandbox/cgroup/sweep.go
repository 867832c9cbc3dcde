package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const prefix = "toolworker-"

// managers tells several managers of one process apart.
var managers atomic.Int64

// dirName names the worker that a directory belongs to: the pid namespace in
// which its process id counts, the id, and when the process started, for ids
// are used again.
func dirName() string {
	return fmt.Sprintf("%s%d-%d-%s-%d", prefix, pidNamespace(), os.Getpid(), startTime(os.Getpid()), managers.Add(1))
}

// sweep removes the directories of dead workers, and kills what may be left
// in them.
func sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), prefix)
		f := strings.Split(name, "-")
		if !ok || len(f) != 4 || f[0] != strconv.FormatUint(pidNamespace(), 10) {
			continue // of a worker of which nothing can be told from here
		}
		pid, err := strconv.Atoi(f[1])
		if err != nil || startTime(pid) == f[2] {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		groups, _ := os.ReadDir(dir)
		for _, g := range groups {
			if g.IsDir() {
				clear(filepath.Join(dir, g.Name()))
			}
		}
		_ = unix.Rmdir(dir)
	}
}

// clear kills the processes of a group and removes it.
func clear(dir string) {
	if write(filepath.Join(dir, "cgroup.kill"), "1") != nil {
		killAll(dir)
	}
	remove(dir)
}

// startTime is when a process started, in clock ticks since boot; "" when
// there is none of this id.
func startTime(pid int) string {
	stat := read(fmt.Sprintf("/proc/%d/stat", pid))
	// The name in parentheses may hold anything.
	f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(f) < 20 {
		return ""
	}
	return f[19]
}

func pidNamespace() uint64 {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return 0
	}
	return st.Ino
}
