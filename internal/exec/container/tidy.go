package container

import (
	"context"
	"errors"
	"time"
)

// sweepInterval is how often containers of dead workers and idle ones are
// looked for.
const sweepInterval = 30 * time.Second

// keepTidy removes what nobody needs, at once and then again and again.
func (m *made) keepTidy(ctx context.Context) {
	tick := time.NewTicker(min(sweepInterval, max(m.config.Idle/4, time.Second)))
	defer tick.Stop()
	for {
		m.retireIdle(time.Now())
		if err := m.sweep(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("look for containers that nobody needs", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep removes what dead workers left behind: containers first, since their
// volumes are in use until then.
func (m *made) sweep(ctx context.Context) error {
	containers, err := m.engine.Containers(ctx, labelManaged)
	if err != nil {
		return err
	}
	now := time.Now()
	var errs []error
	for _, c := range containers {
		if m.config.orphaned(c, now) {
			m.log.Info("remove container of a dead worker", "container", c.ID, "worker", c.Labels[labelWorker])
			errs = append(errs, m.engine.Remove(ctx, c.ID))
		}
	}
	volumes, err := m.engine.Volumes(ctx, labelManaged)
	for _, v := range volumes {
		if m.config.orphaned(v, now) {
			errs = append(errs, m.engine.RemoveVolume(ctx, v.ID))
		}
	}
	return errors.Join(append(errs, err)...)
}

// retireIdle retires containers that were not used for long, or are old.
func (m *made) retireIdle(now time.Time) {
	m.mu.Lock()
	old := make(map[string]*madeContainer)
	for key, c := range m.containers {
		idle := c.users == 0 && !c.used.IsZero() && now.Sub(c.used) >= m.config.Idle
		// The container ends itself at the end of its lifetime: leave it in
		// time for what still runs then.
		if idle || now.Sub(c.born) >= m.config.Lifetime*9/10 {
			old[key] = c
		}
	}
	m.mu.Unlock()
	for key, c := range old {
		m.retire(key, c)
	}
}

// removeAll removes everything that this worker made. Nothing is made after it.
func (m *made) removeAll() error {
	m.mu.Lock()
	m.closed = true
	all := m.containers
	m.containers = nil
	m.mu.Unlock()
	m.removing.Wait()
	var errs []error
	for _, c := range all {
		<-c.ready
		if c.container != nil {
			errs = append(errs, m.engine.Remove(context.Background(), c.container.ID))
		}
	}
	m.volume.mu.Lock()
	defer m.volume.mu.Unlock()
	if m.volume.name != "" {
		errs = append(errs, m.engine.RemoveVolume(context.Background(), m.volume.name))
	}
	return errors.Join(errs...)
}
