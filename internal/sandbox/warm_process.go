package sandbox

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/toolworker/toolworker/internal/sandbox/frame"
)

// heldProcess is a supervisor whose process waits for runs, or for one.
type heldProcess struct {
	confinement *confinement
	sup         *supervisor
	failed      error
	status      unix.WaitStatus // of the process, once it has ended by itself
}

// hold starts a supervisor with the descriptors of its process and tells it
// what to do.
func (r *runner) hold(c *confinement, files []*os.File) (*heldProcess, error) {
	sup, err := r.startSupervisor(append(slices.Clone(files), c.files...), c.attr)
	c.started()
	if err != nil {
		return nil, err
	}
	p := &heldProcess{confinement: c, sup: sup}
	if err := frame.WriteSetup(sup.control, c.setup); err != nil {
		p.Kill()
		_, waitErr := p.Wait()
		return nil, errors.Join(fmt.Errorf("send set-up to sandbox supervisor: %w", err), waitErr)
	}
	return p, nil
}

// begun waits until the supervisor says that its process has started; it
// tells whether there is no /proc.
func (p *heldProcess) begun() (noProc bool) {
	rep, ok := <-p.sup.reports
	return ok && rep.NoProc
}

// Kill implements warm.Process.
func (p *heldProcess) Kill() {
	if !p.sup.init {
		p.confinement.group.Kill()
	}
	p.sup.kill()
}

// Wait implements warm.Process.
func (p *heldProcess) Wait() (unix.WaitStatus, error) {
	for rep := range p.sup.reports {
		switch rep.Kind {
		case frame.Failed:
			_, p.failed = notStarted(&Spec{}, rep)
		case frame.Exited:
			p.status = unix.WaitStatus(rep.Status)
		}
	}
	_, err := p.sup.end()
	if !p.sup.init {
		p.confinement.group.Kill() // who ended its supervisor is not spared for it
	}
	return p.status, err
}
