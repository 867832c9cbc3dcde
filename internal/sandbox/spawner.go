package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// spawner starts processes from one thread that lives as long as it does: a
// parent-death signal is sent when the thread that started the process ends,
// not the program.
type spawner struct {
	jobs chan func()
	once sync.Once
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

// start starts a process.
func (s *spawner) start(path, arg0 string, env []string, files []*os.File, attr *syscall.SysProcAttr) (*os.Process, error) {
	attr.Setsid = true // an interrupt typed at the worker's terminal is not for it
	var p *os.Process
	var err error
	done := make(chan struct{})
	s.jobs <- func() {
		p, err = os.StartProcess(path, []string{arg0}, &os.ProcAttr{Dir: "/", Env: env, Files: files, Sys: attr})
		close(done)
	}
	<-done
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", arg0, err)
	}
	return p, nil
}

// close ends the thread, and with it whatever it started and is still running.
func (s *spawner) close() { s.once.Do(func() { close(s.jobs) }) }
