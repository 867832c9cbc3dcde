package shim

import (
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// killTree ends every descendant and returns when all are reaped. Orphans come
// to this process, init or subreaper that it is, however they detached
// themselves; a killed process cannot finish a fork, so what appears between
// two looks is found by the next.
func killTree() {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if os.Getpid() == 1 {
			_ = unix.Kill(-1, unix.SIGKILL)
		} else {
			for _, pid := range children() {
				_ = unix.Kill(pid, unix.SIGKILL) // not reaped yet, so the number is still its own
			}
		}
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if err == unix.ECHILD {
				return
			}
			if err == nil && pid == 0 {
				break
			}
		}
		time.Sleep(pause)
	}
}

// children are the pids of the direct children of this process.
func children() []int {
	var pids []int
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	found := false
	for _, t := range threads {
		b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		found = true
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if !found {
		return childrenByScan()
	}
	return pids
}

// childrenByScan is for kernels without CONFIG_PROC_CHILDREN.
func childrenByScan() []int {
	var pids []int
	procs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := strconv.Itoa(os.Getpid())
	for _, p := range procs {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile("/proc/" + p.Name() + "/stat")
		if err != nil {
			continue
		}
		// pid (name, which may hold anything) state ppid
		_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == self {
			pids = append(pids, pid)
		}
	}
	return pids
}
