package shim

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// killTree ends every descendant and returns when all are reaped. Orphans come
// to this process, init or subreaper that it is, however they detached
// themselves; a killed process cannot finish a fork, so what appears between
// two looks is found by the next.
func (p *procfs) killTree() {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		p.strike()
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
func (p *procfs) strike() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL)
		return
	}
	struck := map[int]bool{unix.Getpgrp(): true}
	pids := p.descendants()
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
