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
		strike()
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

// strike kills every descendant that can be seen. Process groups first: the
// kernel lets no member slip away, so a bomb that does not know of this ends
// at the first stroke.
func strike() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	struck := map[int]bool{unix.Getpgrp(): true}
	pids := descendants()
	for _, pid := range pids {
		if group, err := unix.Getpgid(pid); err == nil && group > 1 && !struck[group] {
			struck[group] = true
			_ = unix.Kill(-group, unix.SIGKILL)
		}
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// childrenOf are those of a process that /proc calls by this name.
func childrenOf(name string) []int {
	threads, err := os.ReadDir("/proc/" + name + "/task")
	if err != nil {
		return nil
	}
	var pids []int
	supported := len(threads) == 0
	for _, t := range threads {
		b, err := os.ReadFile("/proc/" + name + "/task/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		supported = true
		for f := range strings.FieldsSeq(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	if !supported {
		return childrenByScan(name)
	}
	return pids
}

// childrenByScan is for kernels without CONFIG_PROC_CHILDREN.
func childrenByScan(name string) []int {
	if name == "self" {
		name = strconv.Itoa(os.Getpid())
	}
	var pids []int
	for _, pid := range processes() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			continue
		}
		// pid (name, which may hold anything) state ppid
		stat := string(b)
		if f := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]); len(f) > 1 && f[1] == name {
			pids = append(pids, pid)
		}
	}
	return pids
}
