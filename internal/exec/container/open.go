package container

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/toolworker/toolworker/internal/sandbox/agent"
	"github.com/toolworker/toolworker/internal/tool"
)

// errNoAgent is what an error wraps that says why a container can have no agent.
var errNoAgent = errors.New("no agent can run in this container")

// open opens a session: with an agent if one can be had, else without.
func (b *Backend) open(ctx context.Context, p *place) (session, error) {
	s, err := b.openAgent(ctx, p)
	if err == nil {
		return s, nil
	}
	if !errors.Is(err, errNoAgent) {
		return nil, err
	}
	plain, shellErr := openPlain(ctx, b, p)
	if shellErr != nil {
		return nil, shellErr
	}
	b.log.Warn("tools in a container run without an agent", "container", p.container.ID, "reason", err)
	return plain, nil
}

func (b *Backend) openAgent(ctx context.Context, p *place) (session, error) {
	if b.binary.err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAgent, b.binary.err)
	}
	path := p.agent
	if path == "" {
		var err error
		if path, err = b.bring(ctx, p); err != nil {
			return nil, err
		}
	}
	nonce := rand.Text()
	said := &tail{}
	c, err := p.launcher.launch(ctx, []string{path, agent.OrderServe, nonce}, said)
	if err != nil {
		return nil, err
	}
	s, err := agent.NewSession(ctx, c, nonce)
	if err != nil {
		return nil, &tool.Fault{Err: fmt.Errorf("%w%s", err, said.quoted())}
	}
	return newAgentSession(b, s), nil
}

// bringScript finds a directory from which programs can be executed, takes
// the agent from its input, tries it and says where it is. It is given the
// random name of a directory to make.
const bringScript = `umask 077
for d in "$TMPDIR" /tmp /var/tmp /run /dev/shm /dev; do
	[ -n "$d" ] && [ -d "$d" ] && [ -w "$d" ] || continue
	dir=$d/$1
	mkdir "$dir" 2>/dev/null || continue
	if printf '#!/bin/sh\nexit 0\n' >"$dir/$2" && chmod 700 "$dir/$2" && "$dir/$2" 2>/dev/null; then
		if cat >"$dir/$2" && "$dir/$2" probe "$1"; then
			echo "$dir/$2"
			exit 0
		fi
	fi
	rm -rf "$dir"
done
echo "no directory to execute a program from" >&2
exit 1`

// bring puts the agent into a running container through a command's stdin and
// returns its path there. The agent removes the file once it runs.
func (b *Backend) bring(ctx context.Context, p *place) (string, error) {
	file, err := os.Open(b.binary.path)
	if err != nil {
		return "", &tool.Fault{Err: fmt.Errorf("open worker's executable: %w", err)}
	}
	defer file.Close()
	said := &tail{}
	name := agent.DirPrefix + rand.Text()
	c, err := p.launcher.launch(ctx, []string{"/bin/sh", "-c", bringScript, "sh", name, agent.Name}, said)
	if err != nil {
		return "", err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	var sending sync.WaitGroup
	sending.Go(func() {
		_, _ = io.Copy(c, file) // a script that gives up reads no further
		_ = c.CloseWrite()
	})
	out, err := io.ReadAll(io.LimitReader(c, 4096))
	_ = c.Close() // nobody reads any further, or the script never began
	sending.Wait()
	if ctx.Err() != nil {
		return "", &tool.Fault{Err: fmt.Errorf("bring agent into container: %w", context.Cause(ctx))}
	}
	if err != nil {
		return "", &tool.Fault{Err: fmt.Errorf("bring agent into container: %w", err)}
	}
	path, ok := strings.CutSuffix(strings.TrimSpace(string(out)), "/"+name+"/"+agent.Name)
	if !ok || !strings.HasPrefix(path, "/") || strings.ContainsAny(path, "\n\x00") {
		return "", fmt.Errorf("%w: %q%s", errNoAgent, strings.TrimSpace(string(out)), said.quoted())
	}
	return path + "/" + name + "/" + agent.Name, nil
}

// tail keeps the last bytes of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-tailSize):]...)
	t.buf = t.buf[max(0, len(t.buf)-tailSize):]
	return len(p), nil
}

// quoted is what was written, as the end of an error text; "" for nothing.
func (t *tail) quoted() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := strings.Join(strings.Fields(strings.ToValidUTF8(string(t.buf), "\uFFFD")), " ")
	if s == "" {
		return ""
	}
	return fmt.Sprintf(": %s", s)
}
