package container

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolworker/toolworker/internal/exec"
	"github.com/toolworker/toolworker/internal/exec/container/engine"
	"github.com/toolworker/toolworker/internal/sandbox/agent"
	"github.com/toolworker/toolworker/internal/tool"
)

// agentDir is where the agent lies in containers that a worker makes.
const agentDir = "/.toolworker"

// made are the containers that this worker made from images: one for each
// project, image and network access, reused until they are idle or old.
type made struct {
	config      Config
	log         *slog.Logger
	engine      *engine.Engine
	binary      *binary
	inspections *inspections

	volume lazyVolume

	mu         sync.Mutex
	containers map[string]*madeContainer
	closed     bool
	removing   sync.WaitGroup // added to under mu

	machineMu sync.Mutex
	machine   engine.Version
}

// madeContainer is one of them, being made or ready. Its counters belong to made.mu.
type madeContainer struct {
	ready     chan struct{} // closed when container or err is set
	container *engine.Container
	err       error

	users   int
	used    time.Time // when the last user left
	born    time.Time
	retired bool // to be removed once nobody uses it
}

func newMade(c Config, e *engine.Engine, b *binary, i *inspections) *made {
	return &made{config: c, log: c.Log, engine: e, binary: b, inspections: i, containers: make(map[string]*madeContainer)}
}

// get gives the project's container of this image, and makes it when there
// is none that still runs.
func (m *made) get(ctx context.Context, t *exec.Task, r tool.Resource) (*place, error) {
	key := strings.Join(append([]string{t.Project.ID, t.Root, r.Image, r.WorkspaceFolder, fmt.Sprint(t.Network)}, t.Protect...), "\x00")
	for attempt := 0; ; attempt++ {
		c, err := m.enter(ctx, key, t, r)
		if err != nil {
			return nil, err
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			m.leave(c)
			return nil, context.Cause(ctx)
		}
		if c.err != nil {
			m.leave(c)
			return nil, c.err
		}
		var gone *unusable
		if _, err := m.inspections.usable(ctx, c.container.ID); errors.As(err, &gone) && attempt == 0 {
			// Somebody removed or stopped it: it is ours to replace.
			m.retire(key, c)
			m.leave(c)
			continue
		} else if err != nil {
			m.leave(c)
			return nil, err
		}
		p := &place{
			container: c.container, launcher: engineLauncher{m.engine, c.container.ID},
			release: func() { m.leave(c) },
		}
		if c.container.Labels[labelAgent] != "" {
			p.agent = path.Join(agentDir, agent.Name)
		}
		return p, nil
	}
}

// enter counts a user of the container in, and starts to make it when there is none.
func (m *made) enter(ctx context.Context, key string, t *exec.Task, r tool.Resource) (*madeContainer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errClosed
	}
	c := m.containers[key]
	if c == nil {
		c = &madeContainer{ready: make(chan struct{}), born: time.Now()}
		m.containers[key] = c
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openTimeout)
		go func() {
			defer cancel()
			defer close(c.ready)
			if c.container, c.err = m.make(ctx, t, r); c.err != nil {
				m.retire(key, c)
			}
		}()
	}
	c.users++
	return c, nil
}

func (m *made) leave(c *madeContainer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.users--
	c.used = time.Now()
	if c.retired && c.users == 0 {
		m.removing.Go(func() { m.remove(c) })
	}
}

// retire makes sure that nobody enters the container any more.
func (m *made) retire(key string, c *madeContainer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.containers[key] == c {
		delete(m.containers, key)
	}
	c.retired = true
	if c.users == 0 {
		m.removing.Go(func() { m.remove(c) })
	}
}

func (m *made) remove(c *madeContainer) {
	<-c.ready
	if c.container == nil {
		return
	}
	if err := m.engine.Remove(context.Background(), c.container.ID); err != nil {
		m.log.Warn("remove container", "container", c.container.ID, "error", err)
	}
}

// make makes and starts a container for a task's project.
func (m *made) make(ctx context.Context, t *exec.Task, r tool.Resource) (*engine.Container, error) {
	machine, err := m.aboutMachine(ctx)
	if err != nil {
		return nil, err
	}
	s := engine.Spec{
		Image: r.Image, Dir: r.WorkspaceFolder, Network: t.Network,
		Labels: m.config.labels(t.Project.ID, time.Now()),
		Argv:   []string{"sleep", fmt.Sprint(int(m.config.Lifetime.Seconds()))},
	}
	m.bound(&s, t.Project, machine)
	if s.User, err = owner(t.Root); err != nil {
		return nil, err
	}
	s.Binds = binds(t, r.WorkspaceFolder)
	if m.canHaveAgent(machine) {
		name, err := m.volume.get(func() (string, error) { return m.fill(ctx, r.Image) })
		if err != nil {
			return nil, asUnusable(err)
		}
		s.Labels[labelAgent] = "true"
		s.Volumes = map[string]string{agentDir: name}
		s.Argv = []string{path.Join(agentDir, agent.Name), agent.OrderHold, m.config.Lifetime.String()}
	}
	c, err := m.engine.Run(ctx, s)
	return c, asUnusable(err)
}

// canHaveAgent: the worker's executable runs on the engine's machine.
func (m *made) canHaveAgent(machine engine.Version) bool {
	return m.binary.err == nil && machine.Arch == m.binary.arch
}

// aboutMachine asks the engine about its machine, once.
func (m *made) aboutMachine(ctx context.Context) (engine.Version, error) {
	m.machineMu.Lock()
	defer m.machineMu.Unlock()
	if m.machine.Version != "" {
		return m.machine, nil
	}
	v, err := m.engine.Version(ctx)
	if err == nil {
		m.machine = v
	}
	return v, err
}

// asUnusable turns what the engine refused into the reason that a planner reads.
func asUnusable(err error) error {
	var f *tool.Fault
	var u *unusable
	if err == nil || errors.As(err, &f) || errors.As(err, &u) {
		return err
	}
	return &unusable{err.Error()}
}

// bound gives the container room for as many executions at once as the
// project may have, each at its highest, and for the agent.
func (m *made) bound(s *engine.Spec, p *tool.Project, machine engine.Version) {
	const (
		memoryEach, memoryAgent = 512 << 20, 256 << 20
		pidsEach, pidsAgent     = 128, 64
		tmpEach                 = 256 << 20
	)
	slots := m.config.Slots
	if p.Concurrency > 0 {
		slots = min(slots, p.Concurrency)
	}
	n := int64(slots)
	s.Memory = n*cmp.Or(p.Maximum.MemoryBytes, p.Defaults.MemoryBytes, memoryEach) + memoryAgent
	s.PIDs = n*(cmp.Or(p.Maximum.PIDs, p.Defaults.PIDs, pidsEach)+16) + pidsAgent
	s.CPUs = float64(n) * cmp.Or(p.Maximum.CPUs, p.Defaults.CPUs, 1)
	if machine.Memory > 0 {
		s.Memory = min(s.Memory, machine.Memory)
	}
	if machine.CPUs > 0 {
		s.CPUs = min(s.CPUs, float64(machine.CPUs))
	}
	s.TmpSize = min(n*tmpEach, s.Memory/2)
}

// owner is the user that the container runs as: that of the project's directory.
func owner(root string) (string, error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", &tool.Fault{Err: fmt.Errorf("stat project directory: %w", err)}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", &tool.Fault{Err: errors.New("stat project directory: no owner")}
	}
	return fmt.Sprintf("%d:%d", st.Uid, st.Gid), nil
}

// binds mounts the project, and over it what is protected and exists, read-only.
func binds(t *exec.Task, workspace string) []engine.Bind {
	list := []engine.Bind{{Source: t.Root, Target: workspace}}
	for _, p := range t.Protect {
		source := path.Join(t.Root, p)
		// A link would make the engine mount what it leads to.
		if real, err := filepath.EvalSymlinks(source); err != nil || real != source {
			continue
		}
		if info, err := os.Lstat(source); err == nil && (info.IsDir() || info.Mode().IsRegular()) {
			list = append(list, engine.Bind{Source: source, Target: path.Join(workspace, p), ReadOnly: true})
		}
	}
	return list
}

// fill makes the volume that has the agent.
func (m *made) fill(ctx context.Context, image string) (string, error) {
	name := "toolworker-" + strings.ToLower(rand.Text())
	return name, m.engine.FileVolume(ctx, name, m.config.labels("", time.Now()), image, m.binary.path, agent.Name)
}

// lazyVolume is a volume that is made once, by whoever needs it first.
type lazyVolume struct {
	mu   sync.Mutex
	name string
}

func (v *lazyVolume) get(fill func() (string, error)) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.name != "" {
		return v.name, nil
	}
	name, err := fill()
	if err == nil {
		v.name = name
	}
	return name, err
}
