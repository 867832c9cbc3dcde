// Package natsserver runs real nats-server processes, built from the
// server's own module, for tests and benchmarks.
package natsserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

const module = "github.com/nats-io/nats-server/v2"

// Build builds the server once per process and returns the path of the binary.
var Build = sync.OnceValues(func() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	bin := filepath.Join(dir, "toolworker-test", "nats-server")
	out, err := exec.Command("go", "build", "-o", bin, module).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", module, err, out)
	}
	return bin, nil
})

// Server is one running nats-server process with JetStream.
type Server struct {
	URL  string
	Port int
	dir  string
	args []string
	cmd  *exec.Cmd
	log  *os.File
}

// New prepares a server on a free loopback port with its store below dir,
// without starting it. args are further command line arguments.
func New(dir string, args ...string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	return &Server{URL: fmt.Sprintf("nats://127.0.0.1:%d", port), Port: port, dir: dir, args: args}, nil
}

// Start is New and then Restart. It returns once the server answers.
func Start(ctx context.Context, dir string, args ...string) (*Server, error) {
	s, err := New(dir, args...)
	if err != nil {
		return nil, err
	}
	return s, s.Restart(ctx)
}

// Restart starts the process on the same port and store: for the first time,
// or after Stop or Kill.
func (s *Server) Restart(ctx context.Context) error {
	bin, err := Build()
	if err != nil {
		return err
	}
	if s.log, err = os.OpenFile(filepath.Join(s.dir, "nats.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("open server log: %w", err)
	}
	args := append([]string{"-a", "127.0.0.1", "-p", fmt.Sprint(s.Port), "-js", "-sd", filepath.Join(s.dir, "store")}, s.args...)
	s.cmd = exec.Command(bin, args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("start nats-server: %w", err)
	}
	return s.wait(ctx)
}

func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		nc, err := nats.Connect(s.URL, nats.Timeout(time.Second))
		if err == nil {
			_, err = nc.Request("$JS.API.INFO", nil, time.Second)
			nc.Close()
			if err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for nats-server at %s: %w (last: %w)\n%s", s.URL, ctx.Err(), err, s.Log())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Kill ends the process at once, as a machine that loses power would.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Stop ends the process in order.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

func (s *Server) end(sig syscall.Signal) {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Signal(sig)
	_ = s.cmd.Wait()
	_ = s.log.Close()
	s.cmd = nil
}

// Log is what the server wrote, for failed tests.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "nats.log"))
	return strings.TrimSpace(string(b))
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
